package statusserver

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// bearer is the token of a request; empty if there is none, or more than one word.
func bearer(header http.Header) string {
	words := strings.Fields(header.Get("Authorization"))
	if len(words) != 2 || !strings.EqualFold(words[0], "Bearer") {
		return ""
	}
	return words[1]
}

// claims are a token's own statements. Nothing of them is proven until the API server has seen the signature.
type claims struct {
	audiences []string
	expires   time.Time
}

// readClaims reads a token's claims; ok is false if it is no JSON Web Token.
func readClaims(token string) (read claims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, false
	}
	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, false
	}
	var payload struct {
		Audience any     `json:"aud"` // one text or several (RFC 7519, 4.1.3)
		Expires  float64 `json:"exp"`
	}
	if err = json.Unmarshal(content, &payload); err != nil {
		return claims{}, false
	}
	read.expires = time.Unix(int64(payload.Expires), 0)
	switch audience := payload.Audience.(type) {
	case string:
		read.audiences = []string{audience}
	case []any:
		for _, one := range audience {
			if text, isText := one.(string); isText {
				read.audiences = append(read.audiences, text)
			}
		}
	}
	return read, true
}

// claimFor reports whether a token claims to be valid now and meant for an audience. All others need not be shown to
// the API server.
func (c claims) claimFor(audience string, now time.Time) bool {
	return slices.Contains(c.audiences, audience) && now.Before(c.expires)
}
