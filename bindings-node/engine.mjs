import face from './dist/engine/index.js';

export const { Connection, decode, Decoder, encodeError, encodeNotification, encodeRequest, encodeResponse, Json, json, McpError, Message, Request } = face;
