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

// plainText matches what an assignment to such a name may hold that is no secret.
var plainText = regexp.MustCompile(`(?i)^["']?(?:true|false|0|)["']?$`)

// bareSecret matches secrets without a name: what a client shows, tokens that weft
// token makes, and private keys, also where a line break is written as \n. The
// first part stays. urlSecret matches passwords in addresses.
var (
	bareSecret = regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{16,}|(\b` + madePrefix + `)[a-z0-9_-]{43}\b|(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:[a-z0-9+/=\s]|\\n)*`)
	urlSecret  = regexp.MustCompile(`(://[^\s/@:"]*:)[^\s/@"]+@`)
)

// scrub removes secrets from a text.
func scrub(text string) string {
	text = secretText.ReplaceAllStringFunc(text, func(found string) string {
		part := secretText.FindStringSubmatch(found)
		if plainText.MatchString(part[3]) {
			return found
		}
		return part[1] + part[2] + redacted
	})
	text = bareSecret.ReplaceAllString(text, "${1}${2}${3}"+redacted)
	return urlSecret.ReplaceAllString(text, "${1}"+redacted+"@")
}

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
