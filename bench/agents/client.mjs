/** What every client has in common: what its agents are told, their one tool, and how they are measured. */

/** Tool calls of one agent; it makes one request more, for its last text. */
export const turns = 5;
/** As long as they are in earnest. */
export const instructions = "You work through a list, one item after the other, and keep the list. ".repeat(60);
export const prompt = "Do what is on the list.";
export const toolName = "TodoWrite";
export const toolText = "Keeps your plan: the whole list each time, in order.";

const [baseURL = "", agents = "", workspace = ""] = process.argv.slice(2);
export const server = { baseURL, apiKey: "sk-bench-0123456789", model: "fake" };
export const count = Number(agents);
export const folder = workspace;

let calls = 0;
/** The tool of those who bring none of their own; it answers what ours does. */
export async function keep(todos) {
  calls++;
  return `The plan has ${todos.length} items: ${todos.length} ${todos[0]?.status}.`;
}

/** Runs one agent to have everything loaded, then as many as asked for at once, and prints what those took. */
export async function measure(agent) {
  await agent();
  calls = 0;
  const { result: texts, ...took } = await timed(() => Promise.all(Array.from({ length: count }, () => agent())));
  const whole = texts.filter((text) => text.trim().endsWith("word31")).length;
  if (whole !== count || calls !== count * turns)
    throw new Error(`${whole} texts and ${calls} tool calls of ${count} agents`);
  print(took);
}

/** Milliseconds, of the clock and of the processor, and MiB of the process at its largest. */
export async function timed(work) {
  const begin = process.cpuUsage();
  const at = performance.now();
  const result = await work();
  const { user, system } = process.cpuUsage(begin);
  const memory = process.resourceUsage().maxRSS / 1024;
  return { result, wall: performance.now() - at, cpu: (user + system) / 1000, memory };
}

export function print(took) {
  console.log(`measured ${JSON.stringify(took)}`);
}
