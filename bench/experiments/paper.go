package experiments

import (
	"embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/bench/experiments/figure"
)

// PaperValues is what a paper's figures show, as far as it can be read: lines
// of CSV with the columns figure, series, x, y, the unit of y, and the source.
type PaperValues string

// paperColumns are the columns of the paper's values.
var paperColumns = []string{"figure", "series", "x", "y", "unit", "source"}

// ReadPaper reads a file that is built in.
func ReadPaper(files embed.FS, name string) PaperValues {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return PaperValues(text)
}

// Rows returns the lines, or what is wrong with them.
func (p PaperValues) Rows() ([][]string, error) {
	rows, err := csv.NewReader(strings.NewReader(string(p))).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || !slices.Equal(rows[0], paperColumns) {
		return nil, fmt.Errorf("want the columns %s", strings.Join(paperColumns, ","))
	}
	for i, row := range rows[1:] {
		if _, err := strconv.ParseFloat(row[3], 64); err != nil || row[4] == "" || row[5] == "" {
			return nil, fmt.Errorf("line %d: want a number, its unit and its source, got %q", i+2, row)
		}
	}
	return rows[1:], nil
}

// Number returns the paper's number of a series of a figure at x. To ask for one that
// there is not is a mistake of the program.
func (p PaperValues) Number(figure, series, x string) float64 {
	rows, err := p.Rows()
	if err != nil {
		panic(err) // it is built in, and tested
	}
	for _, row := range rows {
		if row[0] == figure && row[1] == series && row[2] == x {
			v, _ := strconv.ParseFloat(row[3], 64)
			return v
		}
	}
	panic(fmt.Sprintf("the paper has no %s, %s, %q", figure, series, x))
}

// Series returns the paper's points of a series of a figure. x is a number, or
// one of the names of the axis.
func (p PaperValues) Series(name, series string, kind figure.Kind, axis figure.Axis) figure.Series {
	s := figure.Series{Name: series, Kind: kind}
	rows, err := p.Rows()
	if err != nil {
		panic(err) // it is built in, and tested
	}
	for _, row := range rows {
		if row[0] != name || row[1] != series {
			continue
		}
		at := float64(slices.Index(axis.Names, row[2]))
		if len(axis.Names) == 0 {
			at, _ = strconv.ParseFloat(row[2], 64)
		}
		if at < 0 {
			continue // that case is not measured here
		}
		y, _ := strconv.ParseFloat(row[3], 64)
		s.Points = append(s.Points, figure.Point{X: at, Y: figure.Number(y)})
		s.Source = row[5]
	}
	return s
}
