// The diagnostic tools, once for every API: a list with JSON Schemas, and one function that calls.

const counts = { active: 0, started: 0, finished: 0, cancelled: 0 };

function sleep(ms, signal) {
    counts.active++;
    counts.started++;
    return new Promise((resolve, reject) => {
        const end = (how, then) => {
            clearTimeout(timer);
            signal.removeEventListener('abort', abort);
            counts.active--;
            counts[how]++;
            then();
        };
        const abort = () => end('cancelled', () => reject(new Error('cancelled')));
        const timer = setTimeout(() => end('finished', () => resolve('slept')), ms);
        signal.addEventListener('abort', abort);
        if (signal.aborted) abort();
    });
}

/** The text that a tool answers; `report(done, total)` sends progress. */
export async function answer(name, args, signal, report) {
    switch (name) {
        case 'echo':
            return args.text;
        case 'resize':
            return args.text.slice(0, 16) + 'x'.repeat(args.n - 16);
        case 'sleep':
            return sleep(args.ms, signal);
        case 'progress':
            for (let done = 1; done <= args.n; done++) await report(done, args.n);
            return 'done';
        case 'stats':
            return JSON.stringify(counts);
        default:
            throw new Error(`no tool ${name}`);
    }
}

export const result = text => ({ content: [{ type: 'text', text }] });

/** Each tool's arguments and their JSON types. */
export const TOOLS = {
    echo: { text: 'string' },
    resize: { text: 'string', n: 'integer' },
    sleep: { ms: 'integer' },
    progress: { n: 'integer' },
    stats: {}
};

export const TOOL_LIST = Object.entries(TOOLS).map(([name, args]) => ({
    name,
    description: `Diagnostic: ${name}.`,
    inputSchema: {
        type: 'object',
        properties: Object.fromEntries(Object.entries(args).map(([key, type]) => [key, { type }])),
        required: Object.keys(args)
    }
}));

/** The same arguments as zod types. */
export const zodShape = (z, args) =>
    Object.fromEntries(Object.entries(args).map(([key, type]) => [key, type === 'string' ? z.string() : z.number().int()]));

/** A function that reports progress through `notify`, when the caller gave a token. */
export const reporter = (token, notify) => async (progress, total) => {
    if (token === undefined) return;
    await notify({ method: 'notifications/progress', params: { progressToken: token, progress, total } });
};
