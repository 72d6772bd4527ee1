// Passkeys on the pages. The pages work without this script: elements that need it stay hidden until the browser is
// known to support passkeys.
(() => {
  'use strict';
  const key = globalThis.PublicKeyCredential;
  if (!key?.parseCreationOptionsFromJSON || !key.parseRequestOptionsFromJSON || !key.prototype.toJSON) return;

  const WORDS = {
    NotAllowedError: 'No passkey was used. Try again, or use another method.',
    InvalidStateError: 'This device has a passkey for your account already.',
    CHALLENGE_NOT_FOUND: 'This took too long. Try again.',
    PASSKEY_NOT_FOUND: 'This passkey is not known here any more. Sign in another way.',
    BANNED_USER: 'This account is blocked. Contact the operator of the platform.',
    PREVIOUSLY_REGISTERED: 'This passkey was already added.',
    EMAIL_NOT_VERIFIED: 'Confirm your e-mail address first.',
    LIMIT_REACHED: 'You have the maximum number of passkeys. Remove one first.',
    RATE_LIMITED: 'There were too many attempts. Try again later.',
  };

  async function call(url, body) {
    const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const answer = await fetch(url, body === undefined ? { cache: 'no-store' } : post);
    const json = await answer.json().catch(() => ({}));
    if (answer.ok) return json;
    throw Object.assign(new Error('refused'), { name: json.code ?? json.error?.code ?? 'unknown' });
  }

  const ways = {
    async signIn({ api }) {
      const publicKey = key.parseRequestOptionsFromJSON(await call(`${api}/generate-authenticate-options`));
      const shown = await navigator.credentials.get({ publicKey });
      await call(`${api}/verify-authentication`, { response: shown.toJSON() });
    },
    async add({ api }, part) {
      const name = part.querySelector('input').value.trim();
      const publicKey = key.parseCreationOptionsFromJSON(await call(`${api}/generate-register-options`));
      const made = await navigator.credentials.create({ publicKey });
      await call(`${api}/verify-registration`, { response: made.toJSON(), name: name || undefined });
    },
  };

  for (const part of document.querySelectorAll('[data-passkey]')) {
    const [button, alert] = [part.querySelector('button'), part.querySelector('[role="alert"]')];
    button.addEventListener('click', async () => {
      button.disabled = true;
      alert.hidden = true;
      try {
        await ways[part.dataset.passkey](part.dataset, part);
        location.assign(part.dataset.next);
      } catch (error) {
        if (error.name === 'STEP_UP_REQUIRED' || error.name === 'UNAUTHORIZED') {
          location.assign(part.dataset.confirm);
          return;
        }
        alert.textContent = WORDS[error.name] ?? 'This did not work. Try again, or use another method.';
        alert.hidden = false;
        button.disabled = false;
        button.focus();
      }
    });
    part.hidden = false;
  }
})();
