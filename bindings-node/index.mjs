import face from './dist/index.js';

export const { ActionAnswer, ActionError, Approval, audio, Block, Breaker, CallReports, Client, External, Front, image, Json, json, link, Masking, McpError, PermissionManager, Pins, Pool, Prefix, oauth, prompt, ProtocolError, resource, Results, Retry, Server, text, ToolError, toolPin } = face;
