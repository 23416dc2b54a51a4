package export

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// composeBus is the URL of the NATS server of the Compose file itself.
const composeBus = "tls://nats:4222"

// Compose returns a Compose file with one container for each process of the
// plan, one that puts the plan into force and, unless the bus is elsewhere, a
// NATS server.
func Compose(c Config) ([]File, error) {
	m, err := newModel(c)
	if err != nil {
		return nil, err
	}
	own := m.BusURL == ""
	m.BusURL = cmp.Or(m.BusURL, composeBus)
	names := m.certificates()
	if own {
		names = append(names, "nats")
	}
	data := struct {
		*model
		OwnBus       bool
		Certificates []string
	}{m, own, names}
	files := []File{{"plan.yaml", []byte(m.YAML)}}
	for _, name := range []string{"docker-compose.yaml", "nats.conf"} {
		if name == "nats.conf" && !own {
			continue
		}
		text, err := fill(name, data)
		if err != nil {
			return nil, err
		}
		files = append(files, File{name, text})
	}
	return sorted(files), nil
}

// fill fills in a template of the package. Its delimiters are [[ and ]], for
// what it writes may have braces of its own.
func fill(name string, data any) ([]byte, error) {
	t, err := template.New(name+".tmpl").Delims("[[", "]]").Funcs(template.FuncMap{
		"quote":  strconv.Quote,
		"escape": func(s string) string { return strings.ReplaceAll(s, "$", "$$") },
		"port":   func() int { return workerPort },
		"join":   strings.Join,
	}).ParseFS(templates, "templates/"+name+".tmpl")
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	return b.Bytes(), nil
}
