package report

import (
	"fmt"
	"html/template"
	"io"
)

// HTML writes the pages as one document that needs nothing else.
func HTML(w io.Writer, pages []Page) error {
	type section struct {
		Page
		ID  string
		SVG template.HTML
	}
	var list []section
	for i, p := range pages {
		svg, err := p.Figure.SVG()
		if err != nil {
			return fmt.Errorf("draw %s of %s: %w", p.Figure.Name, p.Name, err)
		}
		list = append(list, section{p, fmt.Sprintf("figure-%d", i+1), template.HTML(svg)}) // #nosec G203 -- drawn here; text in it is escaped
	}
	return page.Execute(w, map[string]any{"Sections": list, "Columns": columns})
}

var page = template.Must(template.New("report").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Weft: figures of the papers, measured</title>
<style>
body { font: 15px/1.45 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222 }
section { margin: 3em 0; border-top: 1px solid #ccc }
svg { max-width: 100%; height: auto }
table { border-collapse: collapse; font-size: 13px }
th, td { text-align: left; padding: 2px 10px 2px 0; border-bottom: 1px solid #eee; vertical-align: top }
.missed { color: #b00 } .note { color: #555; font-size: 13px }
</style>
</head>
<body>
<h1>Figures of the papers, measured</h1>
<ul>
{{range .Sections}}<li><a href="#{{.ID}}">{{.Figure.Name}}: {{.Figure.Title}}</a> ({{.Name}})</li>
{{end}}</ul>
{{$columns := .Columns}}{{range .Sections}}<section id="{{.ID}}">
<h2>{{.Figure.Name}}: {{.Figure.Title}}</h2>
<p class="note">{{.Paper}}; experiment {{.Name}}: {{.Title}}</p>
<h3>The paper</h3>
<p>{{.Claim}}</p>
<h3>Weft</h3>
{{.SVG}}
{{if .Claims}}<table>
<tr>{{range $columns}}<th>{{.}}</th>{{end}}</tr>
{{range .Claims}}<tr{{if .Bad}} class="missed"{{end}}>{{range .Cells}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table>
{{end}}{{range .Failed}}<p class="missed">Failed: {{.Case}}, in round {{.Round}}: {{.Error}}</p>
{{end}}<h3>Conditions</h3>
<p>{{.Machine}}. {{.Conditions}}. {{.Rounds}}</p>
<h3>How it was measured</h3>
<p>{{.Method}}</p>
<h3>Why it differs</h3>
<p>{{.Deviation}}</p>
</section>
{{end}}</body>
</html>
`))
