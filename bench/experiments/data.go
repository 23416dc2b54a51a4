package experiments

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/weft-sdn/weft/internal/asowner"
)

// Data is the samples of an experiment, a line of a CSV file each. What has
// been added is in the file at once, so that an interrupted experiment loses
// the sample at work only. Not for several goroutines.
type Data struct {
	file    *os.File
	columns []string
	rows    [][]string
}

// OpenData opens a file of samples, made if there is none. A last line cut
// short by a crash is dropped. A file with other columns is an error.
func OpenData(path string, columns []string) (*Data, error) {
	b, err := asowner.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	d := &Data{columns: columns}
	if len(b) > 0 {
		all, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
		if err != nil {
			return nil, fmt.Errorf("%s: %w; remove it to start anew", path, err)
		}
		if !slices.Equal(all[0], columns) {
			return nil, fmt.Errorf("%s has the columns %s, not %s; remove it to start anew", path, strings.Join(all[0], ","), strings.Join(columns, ","))
		}
		d.rows = all[1:]
	}
	if d.file, err = asowner.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return nil, err
	}
	return d, d.rewrite()
}

// Close closes the file.
func (d *Data) Close() error { return d.file.Close() }

// Rows returns all samples, in the order in which they were taken. They are not
// to be changed.
func (d *Data) Rows() [][]string { return d.rows }

// Has reports whether there is a sample whose first columns are these.
func (d *Data) Has(key ...string) bool {
	return slices.ContainsFunc(d.rows, func(row []string) bool { return slices.Equal(row[:len(key)], key) })
}

// Add adds samples.
func (d *Data) Add(rows ...[]string) error {
	for _, row := range rows {
		if len(row) != len(d.columns) {
			return fmt.Errorf("sample %q has %d columns, want %s", row, len(row), strings.Join(d.columns, ","))
		}
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		return fmt.Errorf("write samples: %w", err)
	}
	if _, err := d.file.Write(b.Bytes()); err != nil { // in one piece: all are there, or none
		return fmt.Errorf("write samples: %w", err)
	}
	d.rows = append(d.rows, rows...)
	return nil
}

// rewrite makes the file what is in memory.
func (d *Data) rewrite() error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.Write(d.columns); err != nil {
		return err
	}
	if err := w.WriteAll(d.rows); err != nil {
		return err
	}
	if err := d.file.Truncate(0); err != nil {
		return err
	}
	if _, err := d.file.Seek(0, 0); err != nil {
		return err
	}
	_, err := d.file.Write(b.Bytes())
	return err
}
