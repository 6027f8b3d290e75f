package gangapi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serializer decodes pods with their schedulingGroup filled in from the label or a mark. Reading at this place covers informers, watches and live
// reads alike.
type serializer struct {
	runtime.NegotiatedSerializer

	marks []Marks
}

func (s serializer) DecoderToVersion(decoder runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return podDecoder{s.NegotiatedSerializer.DecoderToVersion(decoder, version), s.marks}
}

// podDecoder is one decoder of a serializer.
type podDecoder struct {
	runtime.Decoder

	marks []Marks
}

func (d podDecoder) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := d.Decoder.Decode(data, defaults, into)
	switch decoded := object.(type) {
	case *corev1.Pod:
		Adopt(decoded, d.marks...)
	case *corev1.PodList:
		for i := range decoded.Items {
			Adopt(&decoded.Items[i], d.marks...)
		}
	}
	return object, kind, err //nolint:wrapcheck // it stands in place of the decoder
}
