// Shows the OpenAPI document that the page names. Sending requests is disabled, so no credentials are asked for.

const reference = document.getElementById('reference');
const hidden = () => () => null;

function showNotice(text) {
    const notice = document.createElement('p');
    notice.className = 'notice';
    notice.setAttribute('role', 'alert');
    notice.textContent = text;
    reference.replaceChildren(notice);
}

async function show() {
    const response = await fetch(reference.dataset.document);
    if (!response.ok) throw new Error(`status ${response.status}`);
    const spec = await response.json();
    // The document names no server: its paths belong to the address from which it was fetched.
    const server = new URL(reference.dataset.server, location.href).href.replace(/\/$/, '');
    spec.servers = [{ url: server }];
    SwaggerUIBundle({
        domNode: reference,
        spec,
        deepLinking: true,
        docExpansion: 'list',
        defaultModelsExpandDepth: -1,
        supportedSubmitMethods: [],
        validatorUrl: null,
        plugins: [{ wrapComponents: { authorizeBtn: hidden, authorizeOperationBtn: hidden } }],
    });
}

const dark = matchMedia('(prefers-color-scheme: dark)');
const setScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', setScheme);
setScheme();
show().catch(error => showNotice(`The OpenAPI document cannot be shown (${error.message}). Reload the page to try again.`));
