/** How every schema is compiled, ours and users': strict, all problems at once, own properties only. */
export const strictOptions = {
  strict: true,
  // Keys that are required and described elsewhere (`oneOf` of `required`) are normal in our schemas.
  strictRequired: false,
  allowUnionTypes: true,
  allErrors: true,
  ownProperties: true,
} as const;

/** Keywords that say something to editors and nothing to ajv. */
export const ownVocabulary: string[] = ["patternErrorMessage"];
