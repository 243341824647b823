// Reads the bills as JSON from stdin and writes one table; a total that is not the sum of its lines is marked.
import { text } from "node:stream/consumers";

const bills = JSON.parse(await text(process.stdin)).filter((bill) => bill !== null);
const sums = new Map();
console.log("| supplier | bill | date | total | |\n|---|---|---|---:|---|");
for (const { supplier, number, date, currency, lines, total } of bills) {
  const sum = lines.reduce((all, { amount }) => all + amount, 0);
  const remark = Math.abs(sum - total) < 0.005 ? "" : `the lines add up to ${sum.toFixed(2)}`;
  console.log(`| ${supplier} | ${number} | ${date} | ${total.toFixed(2)} ${currency} | ${remark} |`);
  sums.set(currency, (sums.get(currency) ?? 0) + total);
}
for (const [currency, sum] of sums) console.log(`\nTogether ${sum.toFixed(2)} ${currency}`);
