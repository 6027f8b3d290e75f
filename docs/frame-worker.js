// The search of a page that was opened from a file. Browsers start no worker there, so a hidden frame of the page runs the worker's script.
if (location.protocol === "file:") {
  const load = (inner, url) => new Promise((done, failed) => {
    const script = inner.document.createElement("script");
    script.src = new URL(url, location.href).href;
    script.onload = done;
    script.onerror = failed;
    inner.document.head.appendChild(script);
  });

  window.IFrameWorker = class extends EventTarget { // the name that Material's script looks for
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        this.onmessage?.(event);
      };
      this.inner.importScripts = async (...urls) => {
        for (const each of urls) await load(this.inner, each);
      };
      this.ready = load(this.inner, url);
    }

    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data })));
    }

    terminate() { this.inner.frameElement.remove(); }
  };
  window.Worker = window.IFrameWorker;
}
