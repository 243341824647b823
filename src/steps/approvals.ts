import type { ApprovalAnswer, ApprovalRequest, Event } from "../model/event.ts";

/** Folds the approvals of a log, in order: what was asked and has no end, and what was answered. */
export class Approvals {
  readonly #open = new Map<string, ApprovalRequest>();
  readonly #answers = new Map<string, ApprovalAnswer>();
  readonly #upFront = new Map<string, ApprovalAnswer>();
  readonly #last = new Map<string, ApprovalAnswer>();

  add(line: Event): void {
    switch (line.type) {
      case "run.started":
        for (const { step, ...answer } of line.answers ?? []) this.#upFront.set(step, answer);
        break;
      case "run.resumed":
        for (const { step, ...answer } of line.answers ?? []) this.#answers.set(step, answer);
        break;
      case "approval.requested": {
        const { step, question, form, deadline } = line;
        const more = { ...(form !== undefined && { form }), ...(deadline !== undefined && { deadline }) };
        this.#open.set(step, { step, question, ...more });
        this.#answers.delete(step);
        break;
      }
      case "approval.given": {
        const { decision, by, comment, form } = line;
        this.#answers.set(line.step, { decision, by, comment, form });
        this.#last.set(line.step, { decision, by, comment, form });
        break;
      }
      case "step.attempt.finished":
        this.#open.delete(line.step);
        this.#answers.delete(line.step);
        break;
      default:
    }
  }

  /** Those that were asked and have no end, in the order they were asked. */
  get open(): readonly ApprovalRequest[] {
    return [...this.#open.values()];
  }

  openAt(path: string): ApprovalRequest | undefined {
    return this.#open.get(path);
  }

  /** The answer to what is open at `path`, which the step has not taken yet. */
  answerAt(path: string): ApprovalAnswer | undefined {
    return this.#answers.get(path);
  }

  /** The answer that was given before the run began, whatever `path` would ask. */
  upFrontAt(path: string): ApprovalAnswer | undefined {
    return this.#upFront.get(path);
  }

  /** The last answer that the step at `path` took. */
  lastAt(path: string): ApprovalAnswer | undefined {
    return this.#last.get(path);
  }
}
