// Package zmqcert makes certificates of CurveZMQ, with which processes that talk over ZeroMQ know each other.
package zmqcert

import (
	"crypto/ecdh"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrLength is the error for data of a length that Z85 cannot encode.
var ErrLength = errors.New("the length is no multiple of 4 bytes")

// keySize is the length of both keys in bytes.
const keySize = 32

// alphabet are the digits of Z85, ZeroMQ RFC 32.
const alphabet = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// Certificate returns a file with a fresh pair of X25519 keys, in the format of CZMQ and Flux. The secret key is the
// first 32 bytes that random returns. The file has the name for readers; it must be free of quotes.
func Certificate(name string, random io.Reader) (string, error) {
	secret := make([]byte, keySize)
	if _, err := io.ReadFull(random, secret); err != nil {
		return "", fmt.Errorf("reading random bytes: %w", err)
	}
	key, err := ecdh.X25519().NewPrivateKey(secret)
	if err != nil {
		return "", fmt.Errorf("making a key: %w", err)
	}
	publicText, err := Z85(key.PublicKey().Bytes())
	if err != nil {
		return "", err
	}
	secretText, err := Z85(secret)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("# A secret of ZeroMQ CURVE: who has it can join the job.\n\nmetadata\n    name = \"%s\"\n"+
		"curve\n    public-key = \"%s\"\n    secret-key = \"%s\"\n", name, publicText, secretText), nil
}

// Z85 writes data as text: each four bytes, the first one the highest, are a number of five digits.
func Z85(data []byte) (string, error) {
	if len(data)%4 != 0 {
		return "", fmt.Errorf("writing %d bytes as Z85: %w", len(data), ErrLength)
	}
	var text strings.Builder
	for ; len(data) > 0; data = data[4:] {
		number := binary.BigEndian.Uint32(data)
		for divisor := uint32(85 * 85 * 85 * 85); divisor > 0; divisor /= 85 {
			text.WriteByte(alphabet[number/divisor%85])
		}
	}
	return text.String(), nil
}
