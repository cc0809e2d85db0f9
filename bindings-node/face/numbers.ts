/**
 * What integers beyond 2^53 become, which a number of JavaScript's cannot hold: `number` is the nearest double, as
 * `JSON.parse` has it; `bigint` is exact; `text` is the digits in a string. Other numbers are numbers in any case.
 */
export type Integers = 'number' | 'bigint' | 'text';

/** Without so many digits in a row no integer is beyond 2^53. */
const LONG = /\d{16}/;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const INTEGER = /^-?\d+$/;
/** Nobody else begins a string so: it is shown to nobody. */
const MARK = `integer ${Math.random().toString(36)}${Math.random().toString(36)} `.replaceAll('.', '');
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, 'g');

/** @internal What `JSON.parse` gives, with integers as they are wanted. */
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

/** JSON with what stands between its strings changed. */
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

/** @internal What `JSON.stringify` gives, with every `bigint` as the integer that it is. */
export function writeJson(value: unknown): string | undefined {
    try {
        return JSON.stringify(value);
    } catch (error) {
        // It may be a `bigint` that it cannot say, or something that nobody can.
        if (!(error instanceof TypeError)) throw error;
        const marked = JSON.stringify(value, (_, value) => (typeof value === 'bigint' ? MARK + value : value));
        return marked.replace(MARKED, '$1');
    }
}
