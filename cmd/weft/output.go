package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/internal/document"
)

// output is how a command prints data: -o.
type output struct{ format string }

func (o *output) flag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "table", "table, json or yaml")
	cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { // before anything is asked of a controller
		switch o.format {
		case "table", "json", "yaml":
			return run(cmd, args)
		}
		return wrongly(cmd, "output %q; allowed: table, json, yaml", o.format)
	}
}

// print writes v, a message of the API or a value with JSON tags, or calls
// text for people. What is missing in v, as a partition cannot be reached, it
// says on stderr.
func (o *output) print(cmd *cobra.Command, v any, text func(*table)) error {
	w := cmd.OutOrStdout()
	if m, ok := v.(interface{ GetIncomplete() []string }); ok {
		defer func() {
			for _, why := range m.GetIncomplete() {
				fmt.Fprintln(cmd.ErrOrStderr(), "weft: the list is incomplete:", why)
			}
		}()
	}
	if o.format == "table" {
		t := &table{tabwriter.NewWriter(plainWriter{w}, 0, 8, 2, ' ', 0)}
		text(t)
		return t.Flush()
	}
	b, err := toJSON(v)
	if err == nil && o.format == "yaml" {
		b, err = asYAML(b)
	}
	if err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	_, err = plainWriter{w}.Write(b) // JSON means the same then; nothing but strings has what is hidden
	return err
}

// asYAML returns JSON as YAML.
func asYAML(text []byte) ([]byte, error) {
	v, err := document.FromJSON(text)
	if err != nil {
		return nil, err
	}
	return v.Readable()
}

// toJSON writes a message as the controller's HTTP interface does, any other
// value by its tags; indented, with a newline at the end.
func toJSON(v any) ([]byte, error) {
	if m, ok := v.(proto.Message); ok {
		v = message{m}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it is for people, and no part of a web page
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// message is a message of the API as part of a value with JSON tags.
type message struct{ proto.Message }

// MarshalJSON writes it as the controller's HTTP interface does.
func (m message) MarshalJSON() ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}.Marshal(m.Message)
}

// table writes aligned columns.
type table struct{ *tabwriter.Writer }

func (t *table) row(cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		text[i] = plain(fmt.Sprint(c))
		if text[i] == "" {
			text[i] = "-"
		}
	}
	io.WriteString(t, strings.Join(text, "\t")+"\n")
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
