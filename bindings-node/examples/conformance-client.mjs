// The client that the official conformance suite asks for. The suite says in the environment which scenario it plays, and
// passes the server's URL last: conformance client --command "node conformance-client.mjs" --suite all
import { Client, oauth } from 'mcpbolt';

/** Scenarios about skills. */
const SKILLS = 'sep-2640';

const { MCP_CONFORMANCE_SCENARIO: scenario = '', MCP_CONFORMANCE_PROTOCOL_VERSION: revision = '' } = process.env;
/** The suite's data for the scenario. */
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

/** The login that the scenario's context asks for, with a user who consents to everything, without a browser. */
function login() {
    const { client_id: clientId, client_secret: clientSecret, private_key_pem: pem, valid_jwt: workload, idp_id_token: idToken } = context;
    const { signing_algorithm: algorithm, idp_token_endpoint: tokenEndpoint, idp_client_id: idpClientId } = context;
    const grants = { enterprise: tokenEndpoint, workload, clientCredentials: pem ?? (scenario.includes('client-credentials') && clientSecret) };
    const [grant = 'code'] = Object.keys(grants).filter(name => grants[name]);
    return oauth({
        grant,
        clientName: 'mcpbolt-node-conformance',
        clientId,
        clientSecret,
        clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
        redirectUri: 'http://localhost:3000/callback',
        onAuthorize: async ({ url }) => (await fetch(url, { redirect: 'manual' })).headers.get('location'),
        ...(pem && { signingKey: { pem, algorithm } }),
        ...(grant === 'enterprise' && { identityProvider: { tokenEndpoint, clientId: idpClientId } }),
        assertion: () => idToken ?? workload
    });
}

/** Something that fits a plain schema. */
function example(schema) {
    if (schema.enum) return schema.enum[0];
    switch (schema.type) {
        case 'integer':
        case 'number':
            return 1;
        case 'boolean':
            return true;
        case 'array':
            return [];
        case 'object':
            return required(schema);
        default:
            return 'test';
    }
}

/** Arguments that fit a schema: what it requires. */
function required({ properties = {}, required = [] }) {
    return Object.fromEntries(required.map(name => [name, example(properties[name] ?? {})]));
}

/** A form as a user sends it who changes nothing, and fills in what has to be. */
function filled({ requestedSchema }) {
    const fields = Object.entries(requestedSchema.properties ?? {}).filter(([, field]) => 'default' in field);
    const defaults = Object.fromEntries(fields.map(([name, field]) => [name, field.default]));
    return { action: 'accept', content: { ...required(requestedSchema), ...defaults } };
}

async function callTools(client) {
    const tools = await client.listTools();
    switch (scenario) {
        case 'http-custom-headers':
            for (const call of context.toolCalls) await client.callTool(call.name, call.arguments);
            break;
        case 'json-schema-2020-12-preservation': {
            const { inputSchema: schema } = tools.find(({ name }) => name === 'json_schema_2020_12_tool');
            await client.callTool('json_schema_echo', { schema });
            break;
        }
        // Only what is done with the list counts.
        case 'json-schema-ref-no-deref':
            break;
        default:
            for (const { name, inputSchema } of tools) await client.callTool(name, required(inputSchema));
    }
}

async function play(client) {
    if (scenario.startsWith(SKILLS)) {
        for (const skill of await client.skills.list())
            if (scenario !== 'sep-2640-client-no-prefetch') await client.skills.load(skill);
        return;
    }
    const { tools, resources, prompts } = client.capabilities;
    if (tools) await callTools(client);
    if (resources) for (const { uri } of await client.listResources()) await client.readResource(uri);
    if (prompts)
        for (const { name, arguments: fields = [] } of await client.listPrompts())
            await client.getPrompt(name, Object.fromEntries(fields.map(field => [field.name, 'test'])));
}

// Older suites name no revision, and know no probe; the extensions are those of the newest.
const isNewest = scenario.startsWith(SKILLS) || revision >= '2026-07-28';
const client = await Client.connect(process.argv.at(-1), {
    name: 'mcpbolt-node-conformance',
    version: '1.0.0',
    opening: isNewest ? 'probe' : 'handshake',
    ...(!isNewest && revision && { revision }),
    extensions: { 'io.modelcontextprotocol/skills': {} },
    ...(scenario.startsWith('auth/') && { auth: login() }),
    onElicitation: filled
});
try {
    await play(client);
} finally {
    await client.close();
}
