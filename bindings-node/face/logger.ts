/** One record of a `Logger` that is a function. */
export interface LogRecord {
    level: 'error';
    /** Says what failed. */
    message: string;
    /** The exception, with its stack. */
    error: unknown;
}

/**
 * Where failures are logged: a logger of pino or bunyan, which gets `({ err }, message)`; any other object with `error`,
 * such as `console` or a logger of winston, which gets `(message, error)`; or a function.
 */
export type Logger = { error(...args: any[]): unknown } | ((record: LogRecord) => unknown);

/** @internal */
export function logTo(logger: Logger): (error: unknown, what: string) => unknown {
    const message = (what: string) => `mcpbolt: ${what} failed`;
    if (!('error' in logger)) return (error, what) => logger({ level: 'error', message: message(what), error });
    const { bindings, fields } = logger as { bindings?: unknown; fields?: unknown };
    const isObjectFirst = typeof bindings === 'function' || typeof fields === 'object';
    return (err, what) => (isObjectFirst ? logger.error({ err }, message(what)) : logger.error(message(what), err));
}
