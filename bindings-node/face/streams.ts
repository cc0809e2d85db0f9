import { onAbort } from './abort';
import { guarded, type McpError } from './errors';
import type { Notice } from './events';
import type { Link } from './link';
import { Listening } from './listening';
import type { Interests } from './protocol';
import { cancelled } from './requests';

/** @internal The open `Listening` streams of a client. */
export class Streams {
    readonly #open = new Map<Listening, (notice: Notice) => boolean>();

    constructor(private readonly link: Link) {}

    /** Opens a stream in stateless revisions (2026-07-28): its notifications carry its id (R-SUB-06). */
    listen(interests: Interests, signal: AbortSignal | undefined): Promise<Listening> {
        const link = this.link;
        return new Promise<Listening>((resolve, reject) => {
            const number = guarded(() => link.native.listen(JSON.stringify(interests)));
            const listening = new Listening(() => link.giveUp(number));
            const forget = signal && onAbort(signal, () => (void listening.close(), reject(cancelled(signal))));
            listening.onEnd(() => forget?.());
            link.await(number, {
                resolve: () => listening.end(),
                reject: error => (reject(error), listening.end(error)),
                onListening: id => {
                    this.#add(listening, notice => notice.stream === id);
                    resolve(listening);
                }
            });
        });
    }

    /**
     * Filters the notifications that a server of a handshake revision sends anyway, once it knows that this side is
     * ready (R-LIF-03), which it does when `ready` resolves. Subscribes to the resources meanwhile.
     */
    async tune(
        { tools, prompts, resources, uris = [] }: Interests,
        signal: AbortSignal | undefined,
        ready: () => Promise<void>,
        subscribe: (uri: string, wanted: boolean) => Promise<void>
    ): Promise<Listening> {
        const wanted = { toolsChanged: tools, promptsChanged: prompts, resourcesChanged: resources };
        const listening = new Listening(async () => {
            await Promise.all(uris.map(uri => subscribe(uri, false).catch(() => {})));
        });
        this.#add(listening, ({ change }) =>
            change?.type === 'resourceUpdated' ? uris.includes(change.uri) : change !== undefined && wanted[change.type] === true
        );
        await Promise.all([ready(), ...uris.map(uri => subscribe(uri, true))]).catch(error => {
            void listening.close();
            throw error;
        });
        if (signal) listening.onEnd(onAbort(signal, () => void listening.close()));
        return listening;
    }

    #add(listening: Listening, isMeant: (notice: Notice) => boolean): void {
        this.#open.set(listening, isMeant);
        this.link.hold();
        listening.onEnd(() => {
            this.#open.delete(listening);
            this.link.letGo();
        });
    }

    tell(notice: Notice): void {
        for (const [listening, isMeant] of this.#open) if (isMeant(notice)) listening.tell(notice.change!);
    }

    /** Ends all streams with the connection; `failure` is the reason if it ended unexpectedly. */
    end(failure: McpError | undefined): void {
        for (const listening of this.#open.keys()) listening.end(failure);
    }
}
