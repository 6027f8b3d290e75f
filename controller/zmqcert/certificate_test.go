package zmqcert_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/controller/zmqcert"
)

// TestZ85 has the example of ZeroMQ RFC 32, and the ends of the range.
func TestZ85(t *testing.T) {
	for name, test := range map[string]struct {
		data []byte
		want string
		err  error
	}{
		"nothing":     {},
		"the RFC's":   {data: []byte{0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B}, want: "HelloWorld"},
		"lowest":      {data: make([]byte, 4), want: "00000"},
		"highest":     {data: []byte{0xFF, 0xFF, 0xFF, 0xFF}, want: "%nSc0"},
		"three bytes": {data: make([]byte, 3), err: zmqcert.ErrLength},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := zmqcert.Z85(test.data); got != test.want || !errors.Is(err, test.err) {
				t.Errorf("got %q, %v, want %q, %v", got, err, test.want, test.err)
			}
		})
	}
}

// The pairs are those of the tests of libzmq, so the curve, the text and its order of bytes are ZeroMQ's.
func TestCertificate_MatchesLibzmqPairs(t *testing.T) {
	for secret, public := range map[string]string{
		"D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs": "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID",
		"JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6": "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7",
	} {
		text, err := zmqcert.Certificate("train", strings.NewReader(decode(t, secret)))
		if err != nil {
			t.Fatal(err)
		}
		want := "# A secret of ZeroMQ CURVE: who has it can join the job.\n\nmetadata\n    name = \"train\"\ncurve\n" +
			"    public-key = \"" + public + "\"\n    secret-key = \"" + secret + "\"\n"
		if diff := cmp.Diff(want, text); diff != "" {
			t.Errorf("certificate (-want +got):\n%s", diff)
		}
	}
}

func TestCertificate_RefusesShortRandomSource(t *testing.T) {
	if text, err := zmqcert.Certificate("train", strings.NewReader("short")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q, %v", text, err)
	}
}

// decode reads Z85, digit by digit, as the RFC has it.
func decode(t *testing.T, text string) string {
	t.Helper()
	const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
	var data []byte
	for ; len(text) > 0; text = text[5:] {
		var number uint32
		for _, digit := range text[:5] {
			number = number*85 + uint32(strings.IndexRune(digits, digit))
		}
		data = append(data, byte(number>>24), byte(number>>16), byte(number>>8), byte(number))
	}
	return string(data)
}
