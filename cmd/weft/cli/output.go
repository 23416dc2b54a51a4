package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/internal/document"
)

// Output is how a command prints data: -o.
type Output struct {
	Format string
	Wide   bool // with whole DPIDs in place of names
}

func (o *Output) Flag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Format, "output", "o", "table", "table, json or yaml")
	cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&o.Wide, "wide", false, "whole datapath identifiers (DPIDs) of switches instead of their names")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { // before anything is asked of a controller
		switch o.Format {
		case "table", "json", "yaml":
			return run(cmd, args)
		}
		return Usagef(cmd, "output %q; allowed: table, json, yaml", o.Format)
	}
}

// Print writes v, a message of the API or a value with JSON tags, or calls
// text for people. What is missing in v, as a partition cannot be reached, it
// says on stderr.
func (o *Output) Print(cmd *cobra.Command, v any, text func(*Table)) error {
	w := cmd.OutOrStdout()
	if m, ok := v.(interface{ GetIncomplete() []string }); ok {
		defer func() {
			for _, why := range m.GetIncomplete() {
				fmt.Fprintln(cmd.ErrOrStderr(), "weft: the list is incomplete:", why)
			}
		}()
	}
	if o.Format == "table" {
		buffered := bufio.NewWriter(w)
		t := &Table{Writer: tabwriter.NewWriter(PlainWriter{buffered}, 0, 8, 2, ' ', 0), wide: o.Wide}
		t.names = namesFor(cmd)
		text(t)
		return errors.Join(t.Flush(), buffered.Flush())
	}
	b, err := ToJSON(v)
	if err == nil && o.Format == "yaml" {
		b, err = AsYAML(b)
	}
	if err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	_, err = PlainWriter{w}.Write(b) // JSON means the same then; nothing but strings has what is hidden
	return err
}

// AsYAML returns JSON as YAML.
func AsYAML(text []byte) ([]byte, error) {
	v, err := document.FromJSON(text)
	if err != nil {
		return nil, err
	}
	return v.Readable()
}

// ToJSON writes a message as the controller's HTTP interface does, any other
// value by its tags; indented, with a newline at the end.
func ToJSON(v any) ([]byte, error) {
	if m, ok := v.(proto.Message); ok {
		v = Message{m}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it is for people, and no part of a web page
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// Message is a message of the API as part of a value with JSON tags.
type Message struct{ proto.Message }

// MarshalJSON writes it as the controller's HTTP interface does.
func (m Message) MarshalJSON() ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}.Marshal(m.Message)
}

// Table writes aligned columns and sentences, with the names of switches.
type Table struct {
	*tabwriter.Writer
	wide  bool
	names namesOf // nil: there are none
}

// Write writes whole columns and sentences.
func (t *Table) Write(p []byte) (int, error) {
	if t.wide {
		return t.Writer.Write(p)
	}
	if _, err := io.WriteString(t.Writer, readable(string(p), t.names)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (t *Table) Row(cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		text[i] = Plain(fmt.Sprint(c))
		if text[i] == "" {
			text[i] = "-"
		}
	}
	io.WriteString(t, strings.Join(text, "\t")+"\n")
}

// Terminal reports whether somebody reads and types at a file.
func Terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
