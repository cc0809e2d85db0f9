/**
 * How integers beyond 2^53 appear, which a JavaScript number cannot hold: `number` is the nearest double, as in
 * `JSON.parse`; `bigint` is exact; `text` is a string of the digits. Other numbers are always numbers.
 */
export type Integers = 'number' | 'bigint' | 'text';
