/** The last part of a page's address: `hello-world` for `Hello World`. */
export function slug(text) {
  return text;
}
