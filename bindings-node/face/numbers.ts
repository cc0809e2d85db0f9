/**
 * How integers beyond 2^53 appear, which a JavaScript number cannot hold: `number` is the nearest double, as in
 * `JSON.parse`; `bigint` is exact; `text` is a string of the digits. Other numbers are always numbers.
 */
export type Integers = 'number' | 'bigint' | 'text';

/** A text without this many digits in a row has no integer beyond 2^53. */
const LONG = /\d{16}/;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const INTEGER = /^-?\d+$/;
/** Marks integers. Random and never visible outside, so no other string begins with it. */
const MARK = `integer ${Math.random().toString(36)}${Math.random().toString(36)} `.replaceAll('.', '');
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, 'g');

/** @internal Parses JSON, with integers beyond 2^53 as requested. */
export function readJson(text: string, integers: Integers): any {
    if (integers === 'number' || !LONG.test(text)) return JSON.parse(text);
    const read = integers === 'bigint' ? BigInt : String;
    const revive = (_: string, value: unknown) =>
        typeof value === 'string' && value.startsWith(MARK) ? read(value.slice(MARK.length)) : value;
    return JSON.parse(outsideStrings(text, piece => piece.replace(NUMBER, mark)), revive);
}

function mark(token: string): string {
    return INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? `"${MARK}${token}"` : token;
}

/** Applies `change` to the parts of a JSON text outside its strings. */
function outsideStrings(text: string, change: (piece: string) => string): string {
    const pieces: string[] = [];
    for (let at = 0; ; ) {
        const quote = text.indexOf('"', at);
        pieces.push(change(text.slice(at, quote < 0 ? text.length : quote)));
        if (quote < 0) return pieces.join('');
        at = endOfString(text, quote);
        pieces.push(text.slice(quote, at));
    }
}

function endOfString(text: string, quote: number): number {
    for (let at = quote; ; ) {
        at = text.indexOf('"', at + 1);
        if (at < 0) return text.length;
        let before = at;
        while (text[before - 1] === '\\') before--;
        if ((at - before) % 2 === 0) return at + 1;
    }
}

/** @internal Serializes a value as JSON, with every `bigint` as an exact integer. */
export function writeJson(value: unknown): string | undefined {
    try {
        return JSON.stringify(value);
    } catch (error) {
        // The value may contain a `bigint`, which `JSON.stringify` rejects, or may not be serializable at all.
        if (!(error instanceof TypeError)) throw error;
        const marked = JSON.stringify(value, (_, value) => (typeof value === 'bigint' ? MARK + value : value));
        return marked.replace(MARKED, '$1');
    }
}

/** @internal Serializes settings for the engine, which refuses the strings that stand for NaN and infinities here. */
export function settingsJson(settings: object): string {
    return JSON.stringify(settings, (_, value) => (typeof value === 'number' && !Number.isFinite(value) ? String(value) : value));
}
