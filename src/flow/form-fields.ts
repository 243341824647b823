/** What a person fills in who answers an approval. */
export { fieldsOf } from "../steps/form.ts";
