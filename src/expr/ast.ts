import { Star } from "@actions/expressions/ast";
import type {
  Binary,
  ContextAccess,
  Expr,
  ExprVisitor,
  FunctionCall,
  Grouping,
  IndexAccess,
  Literal,
  Logical,
  Unary,
} from "@actions/expressions/ast";
import { TokenType } from "@actions/expressions/lexer";
import type { Token } from "@actions/expressions/lexer";
import { Fault } from "./error.ts";

/**
 * The package's tree with what it lacks: exact positions, names in lower case, no groupings, unescaped strings.
 * `offset` and `length` are UTF-16 units of the source and cover the whole of the construct.
 */
export type Node =
  | LiteralNode
  | ContextNode
  | AccessNode
  | CallNode
  | (At & { readonly type: "not"; readonly operand: Node })
  | (At & { readonly type: "logical"; readonly operator: "&&" | "||"; readonly operands: readonly Node[] })
  | (At & { readonly type: "compare"; readonly operator: Comparison; readonly left: Node; readonly right: Node });

export interface At {
  readonly offset: number;
  readonly length: number;
}
export type Comparison = "==" | "!=" | ">" | ">=" | "<" | "<=";
export type LiteralNode = At & { readonly type: "literal"; readonly value: null | boolean | number | string };
export type ContextNode = At & { readonly type: "context"; readonly name: string };
export type AccessNode = PropertyNode | IndexNode | StarNode;
/** `.name` or `['name']`; `nameOffset` and `nameLength` cover the name as written, quotes included. */
export type PropertyNode = At & {
  readonly type: "property";
  readonly object: Node;
  readonly name: string;
  readonly nameOffset: number;
  readonly nameLength: number;
};
export type IndexNode = At & { readonly type: "index"; readonly object: Node; readonly index: Node };
export type StarNode = At & { readonly type: "star"; readonly object: Node };
/** `name` is in lower case. */
export type CallNode = At & {
  readonly type: "call";
  readonly name: string;
  readonly args: readonly Node[];
};

/** Deep enough for whatever the package's own limit of 50 lets through, except endless chains of comparisons. */
const maxDepth = 200;

/** Converts the package's tree. Throws {@link Fault} when it is too deep to be evaluated by recursion. */
export function buildTree(source: string, tokens: readonly Token[], tree: Expr): Node {
  return new TreeBuilder(source, tokens).build(tree);
}

/** The package's tree has no positions for brackets, so the tokens are walked along: the tree says which comes next. */
class TreeBuilder implements ExprVisitor<Node> {
  readonly #source: string;
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(source: string, tokens: readonly Token[]) {
    this.#source = source;
    this.#tokens = tokens;
  }

  build(expr: Expr): Node {
    if (++this.#depth > maxDepth) {
      const message = "The expression is nested too deep";
      throw new Fault({ kind: "limit", message, offset: this.#start(), length: 1 });
    }
    const node = expr.accept(this);
    this.#depth--;
    return node;
  }

  visitLiteral({ token }: Literal): Node {
    const offset = this.#start();
    const end = this.#step();
    return {
      type: "literal",
      value: literalValue(token, this.#source.slice(offset, end)),
      offset,
      length: end - offset,
    };
  }

  visitContextAccess({ name }: ContextAccess): Node {
    const offset = this.#start();
    return { type: "context", name: name.lexeme.toLowerCase(), offset, length: this.#step() - offset };
  }

  visitGrouping({ group }: Grouping): Node {
    const offset = this.#start();
    this.#step();
    const inner = this.build(group);
    return { ...inner, offset, length: this.#step() - offset };
  }

  visitUnary({ expr }: Unary): Node {
    const offset = this.#start();
    this.#step();
    const operand = this.build(expr);
    return { type: "not", operand, offset, length: endOf(operand) - offset };
  }

  visitBinary(binary: Binary): Node {
    const left = this.build(binary.left);
    this.#step();
    const right = this.build(binary.right);
    const operator = binary.operator.lexeme as Comparison;
    return { type: "compare", operator, left, right, offset: left.offset, length: endOf(right) - left.offset };
  }

  visitLogical({ operator, args }: Logical): Node {
    const offset = this.#start();
    let end = offset;
    const operands = args.map((arg, index) => {
      if (index > 0) this.#step();
      const operand = this.build(arg);
      end = endOf(operand);
      return operand;
    });
    return {
      type: "logical",
      operator: operator.type === TokenType.AND ? "&&" : "||",
      operands,
      offset,
      length: end - offset,
    };
  }

  visitFunctionCall({ functionName, args }: FunctionCall): Node {
    const offset = this.#start();
    this.#step();
    this.#step();
    const built = args.map((arg) => {
      const node = this.build(arg);
      if (this.#peek() === TokenType.COMMA) this.#step();
      return node;
    });
    return {
      type: "call",
      name: functionName.lexeme.toLowerCase(),
      args: built,
      offset,
      length: this.#step() - offset,
    };
  }

  visitIndexAccess({ expr, index }: IndexAccess): Node {
    const object = this.build(expr);
    const { offset } = object;
    const bracket = this.#peek() === TokenType.LEFT_BRACKET;
    this.#step();
    if (index instanceof Star) {
      const end = this.#step();
      return { type: "star", object, offset, length: (bracket ? this.#step() : end) - offset };
    }
    const key = this.build(index);
    const length = (bracket ? this.#step() : endOf(key)) - offset;
    if (key.type !== "literal" || typeof key.value !== "string")
      return { type: "index", object, index: key, offset, length };
    return {
      type: "property",
      object,
      name: key.value,
      nameOffset: key.offset,
      nameLength: key.length,
      offset,
      length,
    };
  }

  #peek(): TokenType | undefined {
    return this.#tokens[this.#next]?.type;
  }

  #start(): number {
    return this.#tokens[this.#next]?.range.start.column ?? this.#source.length;
  }

  /** Steps over one token and tells where it ends. */
  #step(): number {
    return this.#tokens[this.#next++]?.range.end.column ?? this.#source.length;
  }
}

function endOf({ offset, length }: At): number {
  return offset + length;
}

/** The package unescapes only the first `''` of a string, so strings are read from the source. */
function literalValue(token: Token, written: string): LiteralNode["value"] {
  if (token.type === TokenType.STRING) return written.slice(1, -1).replaceAll("''", "'");
  if (token.type === TokenType.NUMBER) return Number(token.value);
  if (token.type === TokenType.NULL) return null;
  if (token.type === TokenType.TRUE || token.type === TokenType.FALSE) return token.type === TokenType.TRUE;
  // The name after a dot.
  return written;
}
