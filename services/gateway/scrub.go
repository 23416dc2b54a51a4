package gateway

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Limits of what the audit log keeps of a request.
const (
	requestMost = 16 << 10  // octets of JSON
	encodeMost  = 256 << 10 // octets of the largest message that is encoded at all
	textMost    = 4 << 10   // octets of one value
	listMost    = 20        // elements of one list
)

// redacted replaces secrets.
const redacted = "[redacted]"

// secretNames are names of fields, and suffixes of such names, whose values are
// secret. The name of a file with the secret is not.
func secretNames() []string {
	return []string{"token", "secret", "password", "passphrase", "key", "sha256", "credentials"}
}

// secretText matches assignments to such names in YAML, JSON and options; the
// third part is the value.
var secretText = regexp.MustCompile(`(?i)("?\b[a-z0-9_.-]*(?:token|secret|password|passphrase|key|credentials)"?)(\s*[:=]\s*)("[^"\n]*"|'[^'\n]*'|[^\s,}\n]+)`)

// scrub removes secrets from a text.
func scrub(text string) string { return secretText.ReplaceAllString(text, "${1}${2}"+redacted) }

// clip shortens a text.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d octets)", strings.ToValidUTF8(text[:most], ""), len(text))
}

// requestText returns a request as JSON without secrets and overlong values.
func requestText(req any) json.RawMessage {
	m, ok := req.(proto.Message)
	if !ok {
		return json.RawMessage(`{}`)
	}
	if n := proto.Size(m); n > encodeMost {
		return omitted(n)
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	var tree any
	if err == nil {
		err = json.Unmarshal(text, &tree)
	}
	if err == nil {
		text, err = json.Marshal(cleaned("", tree))
	}
	if err != nil || len(text) > requestMost {
		return omitted(len(text))
	}
	return text
}

func omitted(octets int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"omitted":"%d octets"}`, octets))
}

// cleaned returns a JSON value under a name without secrets, shortened.
func cleaned(name string, value any) any {
	if isSecret(name) && value != "" {
		return redacted
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = cleaned(key, inner)
		}
	case []any:
		rest := len(v) - listMost
		v = v[:min(len(v), listMost)]
		for i := range v {
			v[i] = cleaned(name, v[i])
		}
		if rest > 0 {
			v = append(v, fmt.Sprintf("and %d more", rest))
		}
		return v
	case string:
		v = clip(scrub(v), textMost)
		return v
	}
	return value
}

func isSecret(name string) bool {
	return slices.ContainsFunc(secretNames(), func(s string) bool {
		rest, ok := strings.CutSuffix(strings.ToLower(name), s)
		return ok && (rest == "" || strings.HasSuffix(rest, "_") || strings.HasSuffix(rest, "."))
	})
}
