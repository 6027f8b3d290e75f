package gangapi

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serializer decodes pods with their schedulingGroup filled in from the label or a mark, and with the first of a
// scheduler's names in place of its aliases. Reading at this place covers informers, watches and live reads alike.
type serializer struct {
	runtime.NegotiatedSerializer

	reading Reading
}

func (s serializer) DecoderToVersion(decoder runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return podDecoder{s.NegotiatedSerializer.DecoderToVersion(decoder, version), s.reading}
}

// podDecoder is one decoder of a serializer.
type podDecoder struct {
	runtime.Decoder

	reading Reading
}

func (d podDecoder) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := d.Decoder.Decode(data, defaults, into)
	switch decoded := object.(type) {
	case *corev1.Pod:
		d.reading.Read(decoded)
	case *corev1.PodList:
		for i := range decoded.Items {
			d.reading.Read(&decoded.Items[i])
		}
	}
	return object, kind, err //nolint:wrapcheck // it stands in place of the decoder
}
