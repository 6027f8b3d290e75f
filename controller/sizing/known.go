package sizing

// Known returns the model of that name, as torchtune's configurations call it. Sizes are those of the published
// checkpoints' config.json, numbers of parameters those of their safetensors index
// (huggingface.co/meta-llama/Llama-3.2-1B and -3B, Llama-3.1-8B, Llama-3.3-70B-Instruct, Llama-3.1-405B,
// Qwen/Qwen2.5-1.5B).
func Known(name string) (Model, bool) {
	model, ok := map[string]Model{
		"llama3_2/1B": {
			Parameters: 1_235_814_400, Layers: 16, Hidden: 2048, KeyValue: 512, Feed: 8192, Vocabulary: 128_256, Embeddings: 1,
		},
		"llama3_2/3B": {
			Parameters: 3_212_749_824, Layers: 28, Hidden: 3072, KeyValue: 1024, Feed: 8192, Vocabulary: 128_256, Embeddings: 1,
		},
		"llama3_1/8B": {
			Parameters: 8_030_261_248, Layers: 32, Hidden: 4096, KeyValue: 1024, Feed: 14_336, Vocabulary: 128_256, Embeddings: 2,
		},
		"llama3_3/70B": {
			Parameters: 70_553_706_496, Layers: 80, Hidden: 8192, KeyValue: 1024, Feed: 28_672, Vocabulary: 128_256, Embeddings: 2,
		},
		"llama3_1/405B": {
			Parameters: 405_853_388_800, Layers: 126, Hidden: 16_384, KeyValue: 1024, Feed: 53_248, Vocabulary: 128_256, Embeddings: 2,
		},
		"qwen2_5/1.5B": {
			Parameters: 1_543_714_304, Layers: 28, Hidden: 1536, KeyValue: 256, Feed: 8960, Vocabulary: 151_936, Embeddings: 1,
		},
	}[name]
	model.Name = name
	return model, ok
}
