import { Outbound } from '../link';
import type { SdkCall } from './call';
import { handlerOf } from './private';
import { isOutOfTheOrdinary, isObject, type SdkProtocol } from './shapes';

const INTERNAL = -32603;

/**
 * @internal Calls the handlers of a low-level `Server` of v1 without the SDK's protocol, which validates each message
 * anew. What the class wraps around a handler, such as the check of its results, is part of it. Unusual requests and
 * those without a handler are left to the SDK.
 */
export class Direct {
    /** Whether the program looks at each message. */
    isSeen = false;

    constructor(readonly protocol: SdkProtocol) {}

    /** Calls the handler of a request; returns whether there is one. */
    serve(call: SdkCall): boolean {
        const { bridge, message, method } = call;
        const { params } = message;
        if (this.isSeen || (params !== undefined && (!isObject(params) || params.task !== undefined || isOutOfTheOrdinary(params)))) return false;
        const handler = handlerOf(this.protocol, method) as ((request: object, extra: object) => Promise<unknown>) | undefined;
        if (handler === undefined) return false;
        const fail = (error: any) => {
            if (call.isOver) return;
            const code = Number.isSafeInteger(error?.code) ? error.code : INTERNAL;
            bridge.answer(call, Outbound.Error, JSON.stringify({ message: error?.message ?? 'Internal error', data: error?.data }), code);
        };
        const give = (result: unknown) => {
            if (call.isOver) return;
            if (!isObject(result)) return fail(new TypeError('the handler returned no result object'));
            try {
                bridge.answer(call, Outbound.Object, JSON.stringify(result));
            } catch (error) {
                fail(error);
            }
        };
        try {
            handler(message, call.context).then(give, fail);
        } catch (error) {
            fail(error);
        }
        return true;
    }
}
