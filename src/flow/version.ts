/** Replaced by the build; from source it is a development version. */
export const version: string = process.env["FLOW_VERSION"] ?? "0.0.0-source";
