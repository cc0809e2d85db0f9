import { AsyncResource } from 'node:async_hooks';
import type { Failures } from './failures';
import { refuse, serveNode, type Handler } from './handler';
import type { Mounted, Names } from './mounted';
import { serveWeb } from './web';

interface Made {
    mounted: Mounted;
    stop: () => void;
}

/** A server mounted in an existing HTTP server. */
export class Endpoint {
    readonly #make: () => Promise<Made>;
    readonly #failures: Failures;
    #made: Promise<Made> | undefined;

    /** @internal Created when the first request arrives. */
    constructor(make: () => Promise<Made>, failures: Failures) {
        // In the async context of the endpoint, not in that of its first request.
        this.#make = AsyncResource.bind(make);
        this.#failures = failures;
    }

    /**
     * Serves a request of `node:http`, `node:http2`, express or a similar framework, even if its body has already been
     * read. If the endpoint cannot be created, calls `onError` with the reason and answers with status 500.
     */
    readonly handler: Handler = (request, response) => void this.serve(request, response);

    /**
     * @internal Serves a request like `handler`, with session names of the caller's own; resolves when the request was
     * taken.
     */
    async serve(request: Parameters<Handler>[0], response: Parameters<Handler>[1], names?: Names): Promise<void> {
        try {
            serveNode((await this.#get()).mounted, request, response, names);
        } catch (error) {
            this.#failures.report(error, 'the endpoint');
            refuse(response, 500);
        }
    }

    /** Serves a web-standard `Request`, as Hono and other frameworks pass it. */
    readonly fetch = (request: Request): Promise<Response> => this.serveWeb(request);

    /** @internal Serves a web-standard `Request` like `fetch`, with what a middleware has verified of its sender. */
    async serveWeb(request: Request, auth?: unknown, names?: Names): Promise<Response> {
        return serveWeb((await this.#get()).mounted, request, auth, names);
    }

    /** Ends its streams gracefully; later requests are refused. */
    close(): void {
        this.#made?.then(({ stop }) => stop()).catch(() => {});
    }

    /** If the creation fails, the next request tries again. */
    #get(): Promise<Made> {
        return (this.#made ??= this.#make().catch(error => {
            this.#made = undefined;
            throw error;
        }));
    }
}
