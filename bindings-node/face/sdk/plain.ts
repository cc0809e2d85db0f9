/** Decisions without the SDK: arguments of plain schemas, and results that need no further checks. */
import { checkOf, definitionOf, parserOf } from './private';
import { isObject } from './shapes';

/** @internal Validates arguments; `undefined` if they do not fit. */
export type Reader = (args: unknown) => { value: unknown } | undefined;

/** Types of zod 4 that run no user code, so that validating them early or late makes no difference. */
const PLAIN = new Set(
    'string number int boolean bigint symbol null undefined void never any unknown date enum literal file nan template_literal'.split(' ')
);

/** Whether a schema of zod 4 runs no user code: then no part of it is asynchronous. */
function isPlain(schema: any, seen = new Set<unknown>()): boolean {
    const def = definitionOf(schema);
    if (def === undefined) return false;
    if (seen.has(schema)) return true;
    seen.add(schema);
    if (def.checks?.some(check => ['custom', 'overwrite', 'property'].includes(checkOf(check) ?? 'custom'))) return false;
    const parts = (...names: string[]) => names.every(name => def[name] == null || isPlain(def[name], seen));
    const all = (items: Iterable<unknown>) => [...items].every(item => isPlain(item, seen));
    switch (def.type) {
        case 'object':
            return all(Object.values(def.shape)) && parts('catchall');
        case 'array':
            return parts('element');
        case 'tuple':
            return all(def.items) && parts('rest');
        case 'record':
        case 'map':
            return parts('keyType', 'valueType');
        case 'set':
            return parts('valueType');
        case 'union':
            return all(def.options);
        case 'intersection':
            return parts('left', 'right');
        case 'optional':
        case 'nullable':
        case 'nonoptional':
        case 'readonly':
        case 'success':
            return parts('innerType');
        case 'default':
        case 'prefault':
            // The getter of a default may be a user function; it is called in either case.
            return parts('innerType');
        default:
            return PLAIN.has(def.type);
    }
}

const readers = new WeakMap<object, Reader | null>();

/** @internal A synchronous reader of the schema's arguments; `null` if it runs user code, which is left to the SDK. */
export function readerOf(schema: any): Reader | null {
    let reader = readers.get(schema);
    if (reader === undefined) readers.set(schema, (reader = makeReader(schema)));
    return reader;
}

function makeReader(schema: any): Reader | null {
    if (definitionOf(schema)?.type !== 'object' || !isPlain(schema)) return null;
    const parse = parserOf(schema);
    if (parse === undefined) return null;
    // Like `safeParse`, which would also create an error for a misfit; the SDK does that again.
    return args => {
        const read = parse(args);
        return read.issues.length === 0 ? read : undefined;
    };
}

/** @internal The text of a result that is exactly one text block. */
export function textOf(result: any): string | undefined {
    if (!isObject(result)) return undefined;
    for (const key in result) if (key !== 'content') return undefined;
    const { content } = result;
    if (!Array.isArray(content) || content.length !== 1 || !isText(content[0])) return undefined;
    const { text } = content[0];
    return text.isWellFormed() ? text : undefined;
}

/** @internal Whether a result of a tool has text blocks only, and otherwise just members that v1 sends unchanged. */
export function isPlainResult(result: any): boolean {
    if (!isObject(result) || !Array.isArray(result.content) || !result.content.every(isText)) return false;
    for (const key in result) {
        const value = result[key];
        if (key === 'content') continue;
        if (key === 'isError' ? typeof value === 'boolean' : key === 'structuredContent' && isPlainObject(value)) continue;
        return false;
    }
    return true;
}

function isText(block: any): boolean {
    if (!isObject(block) || block.type !== 'text' || typeof block.text !== 'string') return false;
    for (const key in block) if (key !== 'type' && key !== 'text') return false;
    return true;
}

function isPlainObject(value: any): boolean {
    return isObject(value) && [Object.prototype, null].includes(Object.getPrototypeOf(value)) && !('toJSON' in value);
}
