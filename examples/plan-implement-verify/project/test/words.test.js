import assert from "node:assert/strict";
import { test } from "node:test";
import { slug } from "../src/slug.js";
import { title } from "../src/title.js";

test("a slug is small letters and dashes", () => assert.equal(slug(" Hello, World! "), "hello-world"));
test("a slug keeps the letters under accents", () => assert.equal(slug("Crème brûlée"), "creme-brulee"));
test("a title begins each word with a capital", () => assert.equal(title("the last day"), "The Last Day"));
