// The server that the official conformance suite asks for: node conformance-server.mjs http://127.0.0.1:8000/mcp
import { setTimeout as pause } from 'node:timers/promises';
import { audio, image, prompt, ProtocolError, resource, Server, text, ToolError } from 'mcpbolt';

/** One red pixel. */
const PNG = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==',
    'base64'
);
/** A moment of silence. */
const WAV = Buffer.from('UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=', 'base64');

const string = { type: 'string' };
const form = (properties, ...required) => ({ type: 'object', properties, required });
const NAME = form({ name: string }, 'name');
const pixel = () => image(PNG, 'image/png');
const embedded = uri => resource(uri, 'This is an embedded resource content.', 'text/plain');
/** What the user filled in under that name. */
const filled = ({ action, content }, field) => (action === 'accept' ? String(content[field]) : action);

const server = new Server('mcpbolt-node-conformance', '1.0.0', {
    instructions: 'Every feature that the conformance suite looks at.',
    listChanges: true,
    subscriptions: true,
    onError: () => {}
});
const tool = (name, description, handler, more) => server.tool(name, { description, ...more }, handler);

// Tools of which each gives back one kind of thing.

tool('test_simple_text', 'Gives a sentence.', () => 'This is a simple text response for testing.');
tool('test_image_content', 'Gives an image.', pixel);
tool('test_audio_content', 'Gives a sound.', () => audio(WAV, 'audio/wav'));
tool('test_embedded_resource', 'Gives a resource.', () => embedded('test://embedded-resource'));
tool('test_multiple_content_types', 'Gives three things.', () => [
    text('Multiple content types test:'),
    pixel(),
    embedded('test://mixed-content-resource')
]);
tool('test_error_handling', 'Fails.', () => {
    throw new ToolError('This tool intentionally returns an error for testing');
});
tool('test_tool_with_logging', 'Logs.', async (_, ctx) => {
    for (const step of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        ctx.log('info', step);
        await pause(50);
    }
    return 'logged';
});
tool('test_logging_tool', 'Logs, for who wants it.', (_, ctx) => {
    ctx.log('info', 'at work');
    return 'logged';
});
tool('test_tool_with_progress', 'Reports progress.', async (_, ctx) => {
    for (const step of [0, 50, 100]) {
        ctx.progress(step, 100);
        await pause(50);
    }
    return 'done';
});
tool('json_schema_2020_12_tool', 'Has a schema with everything.', args => JSON.stringify(args), {
    inputSchema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        $defs: { address: { $anchor: 'addressDef', type: 'object', properties: { street: string, city: string } } },
        properties: {
            name: string,
            address: { $ref: '#/$defs/address' },
            contactMethod: { type: 'string', enum: ['phone', 'email'] },
            phone: string,
            email: string
        },
        allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
        if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
        then: { required: ['phone'] },
        else: { required: ['email'] },
        additionalProperties: false
    }
});
tool('test_custom_header', 'Has an argument that travels in a header.', ({ region = '' }) => region, {
    inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } }
});
tool('test_reconnection', 'Has its client come back.', async (_, ctx) => {
    ctx.releaseStream(500);
    await pause(100);
    return 'the client came back';
});

// Tools that ask the client.

tool('test_sampling', 'Asks the model.', async ({ prompt = '?' }, ctx) => {
    const said = await ctx.sample({ messages: prompt, maxTokens: 100 });
    return `LLM response: ${said.content.text}`;
});
tool('test_elicitation', 'Asks the user.', async ({ message = '?' }, ctx) => {
    const answer = await ctx.elicit(message, form({ username: string, email: string }, 'username', 'email'));
    return `User response: ${JSON.stringify(answer)}`;
});
tool('test_missing_capability', 'Needs a model.', (_, ctx) => {
    ctx.require('sampling');
    return 'the client has a model';
});
tool('test_elicitation_sep1034_defaults', 'Asks with defaults.', async (_, ctx) => {
    const fields = {
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true }
    };
    return JSON.stringify(await ctx.elicit('Is this right?', form(fields)));
});
tool('test_elicitation_sep1330_enums', 'Asks for one or several of a few.', async (_, ctx) => {
    const plain = ['option1', 'option2', 'option3'];
    const titles = ['First Option', 'Second Option', 'Third Option'];
    const titled = titles.map((title, i) => ({ const: `value${i + 1}`, title }));
    const fields = {
        untitledSingle: { type: 'string', enum: plain },
        titledSingle: { type: 'string', oneOf: titled },
        legacyEnum: {
            type: 'string',
            enum: ['opt1', 'opt2', 'opt3'],
            enumNames: ['Option One', 'Option Two', 'Option Three']
        },
        untitledMulti: { type: 'array', items: { type: 'string', enum: plain } },
        titledMulti: { type: 'array', items: { anyOf: titled } }
    };
    return JSON.stringify(await ctx.elicit('Choose', form(fields)));
});
tool('test_streaming_elicitation', 'Asks the user.', async (_, ctx) => filled(await ctx.elicit('Who are you?', NAME), 'name'));
tool('test_input_required_result_elicitation', 'Asks the user.', async (_, ctx) => {
    const answer = await ctx.elicit('What is your name?', NAME, { name: 'user_name' });
    return `Hello, ${filled(answer, 'name')}!`;
});
tool('test_input_required_result_sampling', 'Asks the model.', async (_, ctx) => {
    const question = { messages: 'What is the capital of France?', maxTokens: 100 };
    return (await ctx.sample(question, { name: 'capital_question' })).content.text;
});
tool('test_input_required_result_list_roots', 'Asks for roots.', async (_, ctx) => {
    return JSON.stringify(await ctx.roots({ name: 'client_roots' }));
});
for (const state of ['request_state', 'tampered_state'])
    tool(`test_input_required_result_${state}`, 'Asks with a state that the client hands back.', async (_, ctx) => {
        await ctx.elicit('Please confirm', form({ ok: { type: 'boolean' } }, 'ok'), { name: 'confirm' });
        return 'state-ok';
    });
tool('test_input_required_result_multiple_inputs', 'Asks three things at once.', async (_, ctx) => {
    const [name, greeting, roots] = await Promise.all([
        ctx.elicit('What is your name?', NAME, { name: 'user_name' }),
        ctx.sample({ messages: 'Generate a greeting', maxTokens: 50 }, { name: 'greeting' }),
        ctx.roots({ name: 'client_roots' })
    ]);
    return `${filled(name, 'name')} ${greeting.content.text} ${JSON.stringify(roots)}`;
});
tool('test_input_required_result_multi_round', 'Asks one thing after the other.', async (_, ctx) => {
    const name = await ctx.elicit('Step 1: What is your name?', NAME, { name: 'step1' });
    const fields = form({ color: string }, 'color');
    const colour = await ctx.elicit('Step 2: What is your favorite color?', fields, { name: 'step2' });
    return `${filled(name, 'name')} likes ${filled(colour, 'color')}`;
});
tool('test_input_required_result_capabilities', 'Asks whom the client has.', async (_, ctx) => {
    if (ctx.client.capabilities.elicitation) return filled(await ctx.elicit('Who are you?', NAME), 'name');
    return (await ctx.sample({ messages: 'Who am I?', maxTokens: 10 })).content.text;
});

// Tools whose calls go on as tasks.

const job = (name, description, handler, more) => tool(name, description, handler, { taskSupport: 'optional', ...more });
tool('greet', 'Greets.', ({ name = '' }) => `Hello, ${name}!`);
job('slow_compute', 'A long job.', async ({ seconds = 0, label = '' }, ctx) => {
    if (seconds > 0) {
        ctx.beginTask();
        await pause(seconds * 1000);
    }
    return `${label} computed`;
});
job(
    'failing_job',
    'A job that fails.',
    (_, ctx) => {
        ctx.beginTask();
        throw new ToolError('this job always fails');
    },
    { taskSupport: 'required' }
);
job('protocol_error_job', 'A job that breaks down.', (_, ctx) => {
    ctx.beginTask();
    throw new ProtocolError('internal', 'the job broke down');
});
job('confirm_delete', 'A job that asks.', async ({ filename = 'it' }, ctx) => {
    ctx.beginTask();
    return JSON.stringify(await ctx.elicit(`Really delete ${filename}?`, form({ confirm: { type: 'boolean' } }, 'confirm')));
});
job('multi_input', 'A job that asks twice.', async (_, ctx) => {
    ctx.beginTask();
    const [first, second] = await Promise.all([ctx.elicit('First?', NAME), ctx.elicit('Second?', NAME)]);
    return `${filled(first, 'name')} ${filled(second, 'name')}`;
});
job(
    'test_tool_with_task',
    'A job that asks before it is one.',
    async (_, ctx) => {
        const answer = await ctx.elicit('What is your name?', NAME, { name: 'user_name' });
        ctx.beginTask();
        return `Hello, ${filled(answer, 'name')}!`;
    },
    { taskSupport: 'required' }
);

// Resources, prompts, completion and a skill.

const plain = { mimeType: 'text/plain' };
const begins = value => ['test', 'testing'].filter(one => one.startsWith(value));
server
    .resource('test://static-text', { description: 'Text.', ...plain }, () => 'This is the content of the static text resource.')
    .resource('test://static-binary', { description: 'An image.', mimeType: 'image/png' }, () => PNG)
    .resource('test://watched-resource', { description: 'Changes.', ...plain }, () => 'watched')
    .resourceTemplate('test://template/{id}/data', { description: 'Data by id.', ...plain }, (_, { id }) => `Data for ID: ${id}`)
    .prompt('test_simple_prompt', { description: 'A sentence.' }, () => 'This is a simple prompt for testing.')
    .prompt(
        'test_prompt_with_arguments',
        {
            description: 'Two arguments.',
            arguments: ['arg1', 'arg2'].map(name => ({ name, description: 'Text', required: true, complete: begins }))
        },
        ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`
    )
    .prompt(
        'test_prompt_with_embedded_resource',
        { description: 'A resource.', arguments: [{ name: 'resourceUri', description: 'Which one', required: true }] },
        ({ resourceUri }) => [prompt.user(embedded(resourceUri))]
    )
    .prompt('test_prompt_with_image', { description: 'An image.' }, () => [prompt.user(pixel())])
    .prompt('test_input_required_result_prompt', { description: 'Asks the user first.' }, async (_, ctx) => {
        const fields = form({ context: string }, 'context');
        return filled(await ctx.elicit('What context should the prompt use?', fields, { name: 'user_context' }), 'context');
    })
    .skills(new URL('skills/', import.meta.url));

// Tools that change what is offered.

tool('test_trigger_tool_change', 'Offers a tool for a moment.', () => {
    tool('for_a_moment', 'Nothing.', () => '');
    server.removeTool('for_a_moment');
    return 'changed';
});
tool('test_trigger_prompt_change', 'Offers a prompt for a moment.', () => {
    server.prompt('for_a_moment', { description: 'Nothing.' }, () => '');
    server.removePrompt('for_a_moment');
    return 'changed';
});

const { address, ended } = await server.serve(process.argv[2] ?? 'http://127.0.0.1:8000/mcp');
console.error(address);
await ended;
