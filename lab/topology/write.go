package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ForReaders returns the topology for people who may only look at the lab: without
// the values in the environments of its programs, which may be secrets.
func (t *Topology) ForReaders() *Topology {
	out := *t
	out.Hosts = slices.Clone(t.Hosts)
	for i := range out.Hosts {
		h := &out.Hosts[i]
		h.Run = slices.Clone(h.Run)
		for j := range h.Run {
			env := map[string]string{}
			for key := range h.Run[j].Env {
				env[key] = "hidden"
			}
			h.Run[j].Env = env
		}
	}
	return &out
}

// YAML returns the text of a lab file with everything that the topology has, a
// line for each node and link.
func (t *Topology) YAML() ([]byte, error) {
	b, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("write topology %s: %w", t.Name, err)
	}
	w := yamlWriter{d: json.NewDecoder(bytes.NewReader(b))}
	w.d.UseNumber()
	w.file()
	if w.err != nil {
		return nil, fmt.Errorf("write topology %s: %w", t.Name, w.err)
	}
	return w.out.Bytes(), nil
}

// yamlWriter writes JSON as YAML, of which it is a part, for people to read.
type yamlWriter struct {
	d   *json.Decoder
	out bytes.Buffer
	err error
}

func (w *yamlWriter) next() json.Token {
	token, err := w.d.Token()
	if err != nil && w.err == nil {
		w.err = err
	}
	return token
}

func (w *yamlWriter) more() bool { return w.err == nil && w.d.More() }

// file writes a mapping with a line for each key, and for each element of lists of mappings.
func (w *yamlWriter) file() {
	w.next()
	for w.more() {
		key, _ := w.next().(string)
		switch value := w.next(); {
		case value == json.Delim('[') && key != "controller":
			fmt.Fprintf(&w.out, "%s:", key)
			if !w.more() {
				w.out.WriteString(" []")
			}
			for w.more() {
				w.out.WriteString("\n  - ")
				w.flow(w.next(), "")
			}
			w.next()
		default:
			fmt.Fprintf(&w.out, "%s: ", key)
			w.flow(value, key)
		}
		w.out.WriteByte('\n')
	}
}

// flow writes a value on one line; a mapping's list after it has a key.
func (w *yamlWriter) flow(value json.Token, key string) {
	switch v := value.(type) {
	case json.Delim:
		w.out.WriteString(v.String())
		for first := true; w.more(); first = false {
			if !first {
				w.out.WriteString(", ")
			}
			if v == '[' {
				w.flow(w.next(), "")
				continue
			}
			name, _ := w.next().(string)
			w.out.WriteString(plain(name) + ": ")
			w.flow(w.next(), name)
		}
		end, _ := w.next().(json.Delim)
		w.out.WriteString(end.String())
	case string:
		if key == "ipv4" && v == NoIPv4().String() || key == "ipv6" && v == NoIPv6().String() {
			v = "none"
		}
		w.out.WriteString(plain(v))
	case json.Number:
		w.out.WriteString(v.String())
	case bool:
		fmt.Fprint(&w.out, v)
	default:
		w.out.WriteString("null")
	}
}

// plainText is what needs no quotes anywhere in YAML, if it is no number, truth value or null.
var plainText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*(:[A-Za-z0-9_./-]+)*$|^[0-9]+(\.[0-9]+)?(%|[a-zµ][A-Za-zµ0-9.]*)$|^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+(/[0-9]+)?$`)

func plain(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
	default:
		if plainText.MatchString(s) {
			return s
		}
	}
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // cannot be: any string is one of JSON
	}
	return string(b)
}
