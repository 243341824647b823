import { port } from "./config.js";

export const address = `http://localhost:${port}`;
