import type { Report } from './carry';
import { refuse, serveNode, type Handler } from './handler';
import type { Mounted, Names } from './mounted';
import { serveWeb } from './web';

interface Made {
    mounted: Mounted;
    stop: () => void;
}

/** A server within somebody else's HTTP server. */
export class Endpoint {
    readonly #make: () => Promise<Made>;
    readonly #report: Report;
    #made: Promise<Made> | undefined;

    /** @internal It is made when the first request comes. */
    constructor(make: () => Promise<Made>, report: Report) {
        this.#make = make;
        this.#report = report;
    }

    /**
     * Serves a request of `node:http` and `node:http2`, or of express and the like, whose body may have been read already. Where the
     * endpoint cannot be made, `onError` is told why, and the client that the server failed.
     */
    readonly handler: Handler = (request, response) => void this.serve(request, response);

    /** @internal The same for who has names of its own for sessions; resolves when the request was taken. */
    async serve(request: Parameters<Handler>[0], response: Parameters<Handler>[1], names?: Names): Promise<void> {
        try {
            serveNode((await this.#get()).mounted, request, response, names);
        } catch (error) {
            this.#report(error, 'the endpoint');
            refuse(response, 500);
        }
    }

    /** Serves a request of the web's standards, as Hono and others hand them on. */
    readonly fetch = (request: Request): Promise<Response> => this.serveWeb(request);

    /** @internal The same of whom somebody has verified. */
    async serveWeb(request: Request, auth?: unknown, names?: Names): Promise<Response> {
        return serveWeb((await this.#get()).mounted, request, auth, names);
    }

    /** Streams end in good order; requests that come later are refused. */
    close(): void {
        this.#made?.then(({ stop }) => stop()).catch(() => {});
    }

    /** What could not be made is made anew for the next request. */
    #get(): Promise<Made> {
        return (this.#made ??= this.#make().catch(error => {
            this.#made = undefined;
            throw error;
        }));
    }
}
