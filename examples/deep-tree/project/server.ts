import { port } from "./config.ts";

export const address = `http://localhost:${port}`;
