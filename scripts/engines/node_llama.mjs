// Texts of node-llama-cpp. Reads one JSON object from the standard input and writes one to the standard output;
// node_llama.py runs it. The first argument is the folder with node_modules.
import {readFileSync} from "node:fs";
import {resolve} from "node:path";
import {pathToFileURL} from "node:url";

const entry = resolve(process.argv[2], "node_modules/node-llama-cpp/dist/index.js");
const {getLlama, DraftSequenceTokenPredictor} = await import(pathToFileURL(entry).href);
const {target, draft, drafts, vocabulary, prompts, tokens} = JSON.parse(readFileSync(0, "utf8"));

const llama = await getLlama({gpu: false, build: "never", maxThreads: 1, logLevel: "error"});
// One sequence of a model; rows should differ from the graph's by rounding alone.
async function sequenceOf(modelPath, options) {
    const model = await llama.loadModel({modelPath, gpuLayers: 0});
    const context = await model.createContext({contextSize: 512, threads: 1, flashAttention: false});
    return context.getSequence(options);
}

const predictor = draft === null ? undefined : new DraftSequenceTokenPredictor(await sequenceOf(draft), drafts);
const sequence = await sequenceOf(target, {tokenPredictor: predictor});
const texts = [];
const started = performance.now();
for (const [number, prompt] of prompts.entries()) {
    await sequence.clearHistory();
    const text = [];
    // Defaults are temperature 0, the 40 likeliest, and .95 of the mass.
    const options = {temperature: 1, topK: vocabulary, topP: 1, minP: 0, seed: number + 1, yieldEogToken: true};
    for await (const token of sequence.evaluate(prompt, options)) {
        text.push(token);
        if (text.length === tokens)
            break;
    }
    texts.push(text);
}
const seconds = (performance.now() - started) / 1000;
const written = JSON.stringify({texts, seconds, predictions: sequence.tokenPredictions});
process.stdout.write(written, () => process.exit(0));
