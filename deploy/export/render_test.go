package export

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// rendered renders a template of the chart as Helm does, with autoscaling.enabled
// and the functions of Helm's that autoscaling needs.
func rendered(t *testing.T, files []File, path string) string {
	t.Helper()
	all := template.New("chart")
	unused := func(...any) (string, error) { return "", fmt.Errorf("a function that the test does not know") }
	all.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var b strings.Builder
			err := all.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
		"dict": func(pairs ...any) map[string]any {
			m := map[string]any{}
			for i := 0; i+1 < len(pairs); i += 2 {
				m[pairs[i].(string)] = pairs[i+1]
			}
			return m
		},
		"nindent": func(n int, s string) string {
			return "\n" + strings.Repeat(" ", n) + strings.ReplaceAll(s, "\n", "\n"+strings.Repeat(" ", n))
		},
		"quote": func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"min":   func(a, b int) int { return min(a, b) },
		"trunc": func(n int, s string) string { return s[:min(n, len(s))] },
		"trimSuffix": func(suffix, s string) string {
			return strings.TrimSuffix(s, suffix)
		},
		"default": unused, "toYaml": unused, "sha256sum": unused, "toJson": unused, "first": unused, "mergeOverwrite": unused, "deepCopy": unused,
	})
	root := map[string]any{"Release": map[string]any{"Name": "r", "Service": "Helm", "Namespace": "net"}, "Chart": map[string]any{"Name": "p", "Version": "1", "AppVersion": "1"}}
	for _, f := range files {
		switch f.Path {
		case "values.yaml":
			values := map[string]any{}
			if err := yaml.Unmarshal(f.Data, &values); err != nil {
				t.Fatalf("%s: %v", f.Path, err)
			}
			values["autoscaling"].(map[string]any)["enabled"] = true
			root["Values"] = values
		case "templates/_helpers.tpl", path:
			if _, err := all.New(f.Path).Parse(string(f.Data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var b bytes.Buffer
	if err := all.ExecuteTemplate(&b, path, root); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// at returns what is below keys, which are names and indexes.
func at(t *testing.T, v any, keys ...any) any {
	t.Helper()
	for _, k := range keys {
		switch k := k.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok || m[k] == nil {
				t.Fatalf("there is no %v of %v", k, v)
			}
			v = m[k]
		case int:
			list, ok := v.([]any)
			if !ok || k >= len(list) {
				t.Fatalf("there is no %d of %v", k, v)
			}
			v = list[k]
		}
	}
	return v
}

// TestAutoscalerRendered: as rendered, a worker that the plan scales by its model
// has as many pods as the metric says, within its bounds; another goes by
// processor use.
func TestAutoscalerRendered(t *testing.T) {
	m, err := modelOf(t, `
workers:
  a: {services: [south]}
  b: {services: [route], autoscale: {min: 2, max: 4}}
`)
	if err != nil {
		t.Fatal(err)
	}
	files, err := m.chart("p", m.Units, true)
	if err != nil {
		t.Fatal(err)
	}
	text := rendered(t, files, "templates/autoscaling.yaml")
	var list []any
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var v map[string]any
		if d.Decode(&v) != nil {
			break
		}
		if v != nil {
			list = append(list, v)
		}
	}
	if len(list) != 1 {
		t.Fatalf("%d autoscalers, want one:\n%s", len(list), text)
	}
	for want, keys := range map[string][]any{
		"r-b": {"metadata", "name"}, "StatefulSet": {"spec", "scaleTargetRef", "kind"}, "2": {"spec", "minReplicas"}, "4": {"spec", "maxReplicas"},
		"weft_scaler_wanted": {"spec", "metrics", 0, "external", "metric", "name"},
		"b":                  {"spec", "metrics", 0, "external", "metric", "selector", "matchLabels", "worker"},
		"net":                {"spec", "metrics", 0, "external", "metric", "selector", "matchLabels", "namespace"},
		"AverageValue":       {"spec", "metrics", 0, "external", "target", "type"},
		"1":                  {"spec", "metrics", 0, "external", "target", "averageValue"},
	} {
		if got := fmt.Sprint(at(t, list[0], keys...)); got != want {
			t.Errorf("%v is %s, want %s", keys, got, want)
		}
	}
	if n := len(at(t, list[0], "spec", "metrics").([]any)); n != 1 {
		t.Errorf("%d metrics, want that of the model only", n)
	}

	m, err = modelOf(t, "workers:\n  a: {services: [south]}\n  b: {services: [route], replicas: 3}\n")
	if err != nil {
		t.Fatal(err)
	}
	if files, err = m.chart("p", m.Units, true); err != nil {
		t.Fatal(err)
	}
	if text := rendered(t, files, "templates/autoscaling.yaml"); !strings.Contains(text, "averageUtilization") || !strings.Contains(text, "maxReplicas: 3") || strings.Contains(text, "weft_scaler_wanted") {
		t.Errorf("by processor use:\n%s", text)
	}
}
