/**
 * A model that answers at once: five calls of `TodoWrite`, one a turn, then a text, streamed as Chat Completions. It remembers
 * nothing: the results in a request say how far its conversation is. `/MS/v1` answers after so many milliseconds.
 */
import { createServer } from "node:http";
import { toolName, turns } from "./client.mjs";

const answers = Array.from({ length: turns }, (_, turn) => {
  const id = `call_${turn}`;
  const begin = { index: 0, id, type: "function", function: { name: toolName, arguments: "" } };
  const todos = ["first", "second", "third"].map((item) => ({
    content: `The ${item} of ${turn}`,
    status: "completed",
  }));
  const pieces = JSON.stringify({ todos }).match(/.{1,16}/g) ?? [];
  const deltas = [begin, ...pieces.map((text) => ({ index: 0, function: { arguments: text } }))];
  return events(
    deltas.map((call) => ({ tool_calls: [call] })),
    "tool_calls",
  );
});
const words = Array.from({ length: 32 }, (_, index) => ({ content: `word${index} ` }));
const text = events(words, "stop");

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("latin1");
  request.on("data", (piece) => (body += piece));
  request.on("end", () => {
    const wait = Number(request.url?.split("/")[1]);
    const reply = answers[body.split('"role":"tool"').length - 1] ?? text;
    if (wait > 0) setTimeout(send, wait, response, reply);
    else send(response, reply);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", 4096, () => process.send?.(server.address()?.port));

let sent = 0;

/** In three pieces, so that a stream is one, and with an id of its own, by which a framework may know a message. */
function send(response, reply) {
  const id = `chatcmpl-${++sent}`;
  const [first, middle, last] = reply.map((piece) => piece.replaceAll("chatcmpl-0", id));
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(first);
  setImmediate(() => {
    response.write(middle);
    setImmediate(() => response.end(last));
  });
}

function events(deltas, finish) {
  const about = { id: "chatcmpl-0", object: "chat.completion.chunk", created: 1, model: "fake" };
  const chunk = (delta, finish_reason = null) => ({ ...about, choices: [{ index: 0, delta, finish_reason }] });
  const usage = { prompt_tokens: 900, completion_tokens: 40, total_tokens: 940 };
  const all = [
    chunk({ role: "assistant", content: null }),
    ...deltas.map((delta) => chunk(delta)),
    chunk({}, finish),
    { ...about, choices: [], usage },
  ];
  const lines = [...all.map((one) => JSON.stringify(one)), "[DONE]"].map((data) => `data: ${data}\n\n`);
  const third = Math.ceil(lines.length / 3);
  return [lines.slice(0, third), lines.slice(third, 2 * third), lines.slice(2 * third)].map((some) => some.join(""));
}
