/** Loader hooks for ES modules, as `module.register` (`load`), `module.registerHooks` (`loadNow`) and `watchReading` (`endOf`) take them. */
import { CLASSES, ENTRY, isJoined, JOIN } from './modules';

interface Loaded {
    format?: string | null | undefined;
    source?: string | NodeJS.ArrayBufferView | ArrayBuffer | null | undefined;
}

const ifDeclared = (name: string, what: string) => `${name}: typeof ${name} === 'undefined' ? undefined : ${what}`;
const OF_MODULE = [
    ...CLASSES.map(name => ifDeclared(name, name)),
    ifDeclared(ENTRY, `{ value: ${ENTRY}, replace: by => { ${ENTRY} = by; } }`)
].join(', ');
const join = (classes: string, file: string) => `\n;globalThis[Symbol.for('${JOIN}')]?.(${classes}, ${file});\n`;
/** The line that is added at the end of a module of an SDK. Its exports stay the same. */
const ENDS = {
    module: join(`{ ${OF_MODULE} }`, 'import.meta.url'),
    commonjs: join('module.exports', '__filename')
};

/** @internal What is added at the end of an ES module. */
export function endOf(url: string): string | undefined {
    return isJoined(url) ? ENDS.module : undefined;
}

function joined<T extends Loaded>(url: string, loaded: T): T {
    const end = (ENDS as Record<string, string>)[loaded.format ?? ''];
    // Without source, the loader of CommonJS reads the file: see `watchModules`.
    if (end === undefined || loaded.source == null || !isJoined(url)) return loaded;
    const text = typeof loaded.source === 'string' ? loaded.source : new TextDecoder().decode(loaded.source);
    return { ...loaded, source: text + end };
}

/** @internal */
export async function load<T extends Loaded>(url: string, context: object, next: (url: string, context: object) => Promise<T>): Promise<T> {
    return joined(url, await next(url, context));
}

/** @internal */
export function loadNow<T extends Loaded>(url: string, context: object, next: (url: string, context: object) => T): T {
    return joined(url, next(url, context));
}
