"use strict";
// Text from jobs and workers is only ever set as text, never as markup.
const place = (id) => document.getElementById(id);
let chosen = null, stream = null;

async function ask(path, method = "GET") {
  const answer = await fetch(path, { method, headers: { accept: "application/json" } });
  const body = await answer.json();
  if (!answer.ok) throw new Error(typeof body.detail === "string" ? body.detail : answer.status);
  return body;
}

function cell(row, value, kind = "") {
  const made = row.insertCell();
  made.className = kind;
  if (value instanceof Node) made.append(value); else made.textContent = value;
}

function button(text, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.onclick = act;
  return made;
}

function rows(id, list, fill) {
  const body = place(id).tBodies[0], fresh = document.createElement("tbody");
  for (const each of list) fill(fresh.insertRow(), each);
  body.replaceWith(fresh);
}

function worker(row, each) {
  cell(row, each.name, "code");
  cell(row, each.backend);
  cell(row, each.arch);
  cell(row, each.tags.join(", "));
  cell(row, `${each.load} of ${each.capacity}${each.verified ? "" : " (unverified)"}`);
  cell(row, each.devices.join(", "));
  cell(row, each.held.map((held) => `${held.device}: ${held.task}`).join("\n"), "code");
  cell(row, each.health === "closed" ? "answers" : `${each.health}: ${each.reason}`, each.health);
}

function job(row, each) {
  row.dataset.job = each.job_id;
  cell(row, button(each.job_id.slice(0, 8), () => choose(each.job_id)));
  cell(row, each.user);
  cell(row, each.op_name);
  cell(row, each.job_type);
  cell(row, `${each.backend} ${each.arch} ${each.dsl}`);
  cell(row, each.priority);
  cell(row, new Date(each.submit_time * 1000).toLocaleString());
  cell(row, each.status, each.status);
  const over = !["pending", "running"].includes(each.status);
  cell(row, over ? "" : button("cancel", () => ask(`/api/v1/jobs/${each.job_id}/cancel`, "POST").then(refresh, failed)));
}

function failed(error) { place("state").textContent = String(error.message || error); }

async function refresh() {
  try {
    const [workers, jobs] = await Promise.all([ask("/api/v1/workers"), ask("/api/v1/jobs?limit=100")]);
    rows("workers", workers, worker);
    rows("jobs", jobs.jobs, job);
    place("counts").textContent = Object.entries(jobs.counts).map(([name, count]) => `${count} ${name}`).join(" · ");
    place("state").textContent = `as of ${new Date().toLocaleTimeString()}`;
    const found = jobs.jobs.find((each) => each.job_id === chosen);
    if (found) facts(found);
  } catch (error) { failed(error); }
}

function facts(each) {
  const list = place("facts");
  list.replaceChildren();
  for (const name of ["status", "outcome", "error", "user", "op_name", "backend", "arch", "dsl", "starts"]) {
    if (each[name] === null) continue;
    const term = document.createElement("dt"), said = document.createElement("dd");
    term.textContent = name;
    said.textContent = each[name];
    list.append(term, said);
  }
}

function choose(id) {
  if (stream) stream.close();
  chosen = id;
  place("one").hidden = false;
  place("name").textContent = id;
  place("log").textContent = "";
  stream = new EventSource(`/api/v1/jobs/${id}/events`);
  for (const kind of ["submitted", "started", "assigned", "log", "verified", "profiled", "worker_fault", "requeued", "cancelling", "finished"]) {
    stream.addEventListener(kind, (event) => {
      const said = JSON.parse(event.data), log = place("log");
      const { job: _job, time, ...rest } = said;
      const text = kind === "log" ? said.text : `${kind} ${JSON.stringify(rest)}`;
      log.append(`${new Date(time * 1000).toLocaleTimeString()}  ${text.trim()}\n`);
      log.scrollTop = log.scrollHeight;
      if (kind === "finished") stream.close();
    });
  }
  refresh();
}

refresh();
setInterval(refresh, 2000);
