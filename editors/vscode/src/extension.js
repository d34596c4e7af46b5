// Starts the language server, shows the texts that its commands return, and lists the phases of the text in front.
const path = require("node:path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const SCHEME = "ait-text";
const PHASE = "ait-lsp.phase";

/** The texts that commands returned, by their URIs. */
class Texts {
  constructor() {
    this.texts = new Map();
    this.changed = new vscode.EventEmitter();
    this.onDidChange = this.changed.event;
  }

  provideTextDocumentContent(uri) {
    return this.texts.get(uri.toString()) ?? "";
  }

  async show(result) {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${result.name}` });
    this.texts.set(uri.toString(), result.text);
    this.changed.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true });
  }
}

/** The phases that the text in front can be run to: those of its lenses. */
class Phases {
  constructor() {
    this.client = undefined;
    this.changed = new vscode.EventEmitter();
    this.onDidChangeTreeData = this.changed.event;
  }

  refresh() {
    this.changed.fire(undefined);
  }

  getTreeItem(lens) {
    const item = new vscode.TreeItem(lens.command.arguments[2]);
    item.description = lens.graph;
    item.tooltip = lens.command.title;
    item.command = lens.command;
    return item;
  }

  async getChildren() {
    const document = vscode.window.activeTextEditor?.document;
    if (document?.languageId !== "mlir" || document.uri.scheme === SCHEME || !this.client?.isRunning()) return [];
    const lenses = await this.client.sendRequest("textDocument/codeLens", {
      textDocument: { uri: this.client.code2ProtocolConverter.asUri(document.uri) },
    });
    const ofPhases = (lenses ?? []).filter((lens) => lens.command?.command === PHASE);
    const several = new Set(ofPhases.map((lens) => lens.range.start.line)).size > 1;
    for (const lens of ofPhases) {
      const head = document.lineAt(lens.range.start.line).text;
      lens.graph = several ? (head.match(/@[\w$.]+/)?.[0] ?? `line ${lens.range.start.line + 1}`) : "";
    }
    return ofPhases;
  }
}

let client;
let phases;
let texts;

function newClient() {
  const settings = vscode.workspace.getConfiguration("ait");
  const server = { command: settings.get("server"), args: settings.get("arguments") };
  return new LanguageClient("ait", "ait_mlir IR", server, {
    documentSelector: [
      { scheme: "file", language: "mlir" },
      { scheme: "untitled", language: "mlir" },
    ],
    initializationOptions: { target: settings.get("target"), showsTexts: true },
    middleware: {
      async executeCommand(command, args, next) {
        const title = `ait_mlir: ${command === PHASE ? args[2] : path.basename(command)}`;
        const options = { location: vscode.ProgressLocation.Window, title };
        const result = await vscode.window.withProgress(options, () => next(command, args));
        if (result?.text !== undefined && !result.failed) await texts.show(result);
        return result;
      },
    },
  });
}

async function start() {
  client = newClient();
  phases.client = client;
  try {
    await client.start();
  } catch (error) {
    const command = vscode.workspace.getConfiguration("ait").get("server");
    vscode.window.showErrorMessage(
      `The language server ${command} does not start (${error.message}). ` +
        "pip install '.[lsp]' in a checkout of ait_mlir installs it; the setting ait.server says where it is.",
    );
  }
  phases.refresh();
}

async function restart() {
  await client?.stop().catch(() => undefined);
  await start();
}

async function activate(context) {
  phases = new Phases();
  texts = new Texts();
  let timer;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(() => phases.refresh(), 500);
  };
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, texts),
    vscode.window.registerTreeDataProvider("ait.phases", phases),
    vscode.commands.registerCommand("ait.restart", restart),
    vscode.window.onDidChangeActiveTextEditor(later),
    vscode.workspace.onDidChangeTextDocument(later),
    vscode.workspace.onDidCloseTextDocument((document) => texts.texts.delete(document.uri.toString())),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("ait") && restart()),
  );
  await start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
