package sizing

import "math/big"

// Model holds the properties of a transformer on which its memory depends.
type Model struct {
	// Name is the users' name for it; empty for a model known by its number of parameters only.
	Name string
	// Parameters is their number.
	Parameters int64
	// Layers is the number of transformer layers, Hidden the width of the residual stream, KeyValue that of keys and of
	// values, Feed the inner width of the gated feed-forward network. Feed is 0 for a model with a network of the
	// original kind, of four times Hidden.
	Layers, Hidden, KeyValue, Feed int64
	// Vocabulary is the number of tokens, and Embeddings the number of matrices of Vocabulary x Hidden: 1 if input and
	// output share theirs.
	Vocabulary, Embeddings int64
}

// usualVocabulary is that of Llama 3, rounded. Among the models of 2024 and later it is neither small nor large.
const usualVocabulary = 128_000

// usualAspect is Hidden / Layers of models of usual proportions: 128 for Llama 2 7B, Llama 3 8B and GPT-3 175B, 102 for
// Llama 3 70B.
const usualAspect = 128

// Proportioned returns a model known by its number of parameters only: 12 x Layers x Hidden^2 of them in layers
// (Narayanan et al., arXiv 2104.04473, section 2), with 128 times as wide a residual stream as it has layers.
func Proportioned(parameters int64) Model {
	layers := max(1, root(parameters/(12*usualAspect*usualAspect), 3))
	hidden := max(1, root(parameters/(12*layers), 2))
	return Model{
		Parameters: parameters,
		Layers:     layers,
		Hidden:     hidden,
		KeyValue:   hidden,
		Vocabulary: usualVocabulary,
		Embeddings: 1,
	}
}

// root is the nearest integer to the second or third root of a number, found without floating point so that all
// machines agree.
func root(of, degree int64) int64 {
	power := func(base int64) *big.Int { return new(big.Int).Exp(big.NewInt(base), big.NewInt(degree), nil) }
	low, high := int64(0), int64(1)<<31
	for low < high {
		middle := (low + high + 1) / 2
		if power(middle).Cmp(big.NewInt(of)) <= 0 {
			low = middle
		} else {
			high = middle - 1
		}
	}
	below := new(big.Int).Sub(big.NewInt(of), power(low))
	above := new(big.Int).Sub(power(low+1), big.NewInt(of))
	if above.Cmp(below) < 0 {
		return low + 1
	}
	return low
}

// layer is the number of parameters in the matrices of one layer.
func (m Model) layer() int64 {
	attention := 2*m.Hidden*m.Hidden + 2*m.Hidden*m.KeyValue
	if m.Feed == 0 {
		return attention + 8*m.Hidden*m.Hidden
	}
	return attention + 3*m.Hidden*m.Feed
}

// embeddings is the number of parameters outside of layers.
func (m Model) embeddings() int64 { return m.Embeddings * m.Vocabulary * m.Hidden }

// adapters is the number of parameters of low-rank adapters on queries, values, attention outputs and the feed-forward
// network: each adds rank x (inputs + outputs), as torchtune's configurations have it.
func (m Model) adapters(rank int64) int64 {
	feed, matrices := m.Feed, int64(3)
	if feed == 0 {
		feed, matrices = 4*m.Hidden, 2
	}
	return m.Layers * rank * (5*m.Hidden + m.KeyValue + matrices*(m.Hidden+feed))
}
