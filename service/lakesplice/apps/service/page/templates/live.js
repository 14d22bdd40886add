// Brings what is marked data-live up to date without a new page, so that focus and scrolling stay.
(() => {
  const seconds = Number(document.body.dataset.refreshSeconds);
  const trouble = document.getElementById("trouble");
  const pause = document.getElementById("pause");
  const search = document.getElementById("search");
  let asked = 0;

  const replace = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const focused = document.activeElement && document.activeElement.id;
    const open = [...document.querySelectorAll("details[open]")].map((one) => one.id);
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(part.id);
      if (other) part.replaceChildren(...other.childNodes);
    }
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused && document.activeElement.id !== focused) {
      document.getElementById(focused)?.focus({ preventScroll: true });
    }
  };

  const update = async () => {
    const number = ++asked;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(`the service answers ${answer.status}`);
      const text = await answer.text();
      if (number === asked) replace(text);
      trouble.textContent = "";
    } catch (error) {
      if (number === asked) trouble.textContent = `Not up to date: ${error.message}.`;
    }
  };

  const reads = () => !document.hidden && getSelection().isCollapsed;
  const paused = () => pause.getAttribute("aria-pressed") === "true";
  setInterval(() => { if (reads() && !paused()) update(); }, seconds * 1000);

  pause.hidden = false;
  pause.addEventListener("click", () => {
    pause.setAttribute("aria-pressed", String(!paused()));
    if (!paused()) update();
  });

  const show = (query) => {
    history.replaceState(null, "", query ? `?${query}` : location.pathname);
    update();
  };
  const asks = () => {
    const wanted = new URLSearchParams([...new FormData(search)].filter(([, value]) => value));
    const shown = new URLSearchParams(location.search);
    if (shown.has("order") && shown.get("sort") === wanted.get("sort")) wanted.set("order", shown.get("order"));
    return wanted.toString();
  };
  search?.addEventListener("input", () => show(asks()));
  search?.addEventListener("submit", (event) => { event.preventDefault(); show(asks()); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-sort]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const query = new URL(link.href).searchParams;
    if (search) search.elements.sort.value = query.get("sort");
    show(query.toString());
  });
})();
