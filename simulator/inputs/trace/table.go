package trace

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// open lets a function read a file, uncompressed if its name ends in .gz.
func open[T any](path string, read func(in io.Reader, file string) (T, error)) (T, error) {
	var none T
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, badinput.At(path, 0, "there is no such file", "check the path")
	}
	if err != nil {
		return none, badinput.At(path, 0, "it cannot be read: "+errors.Unwrap(err).Error(), "make it readable")
	}
	defer func() { _ = file.Close() }() // it was only read
	if !strings.HasSuffix(path, ".gz") {
		return read(file, path)
	}
	plain, err := gzip.NewReader(file)
	if err != nil {
		return none, badinput.At(path, 0, "it is not compressed by gzip, as its name says", "rename it, or compress it")
	}
	return read(plain, path)
}

// table is a CSV file with a line of column names, read row by row. The first fault ends the rows, and fault returns
// it.
type table struct {
	file    string
	rows    *csv.Reader
	columns map[string]int
	row     []string
	// named is the line of each row that has a name.
	named map[string]int
	err   error
}

// newTable reads the line of column names, which has to have those that are needed.
func newTable(in io.Reader, file string, needed ...string) (*table, error) {
	t := &table{file: file, rows: csv.NewReader(in), columns: map[string]int{}, named: map[string]int{}}
	t.rows.ReuseRecord = true
	header, err := t.rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, badinput.At(
			file,
			0,
			"it is empty",
			"begin it with a line of column names: "+strings.Join(needed, ","),
		)
	}
	if err != nil {
		return nil, t.unreadable(err)
	}
	for i, column := range header {
		t.columns[strings.TrimSpace(column)] = i
	}
	for _, column := range needed {
		if _, ok := t.columns[column]; !ok {
			return nil, badinput.At(file, 1, fmt.Sprintf("there is no column %s", column),
				"the columns have to be named, and be at least "+strings.Join(needed, ","))
		}
	}
	return t, nil
}

// next advances to the next row and reports whether there is one.
func (t *table) next() bool {
	if t.err != nil {
		return false
	}
	row, err := t.rows.Read()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			t.err = t.unreadable(err)
		}
		return false
	}
	t.row = row
	return true
}

// fault is the first thing that was wrong, or that there was no row at all.
func (t *table) fault(row string) error {
	if t.err == nil && t.row == nil {
		t.err = badinput.At(t.file, 0, "there is nothing below the column names", "add "+row)
	}
	return t.err
}

// refuse ends the reading because of a fault in this row.
func (t *table) refuse(what, mend string) {
	if t.err == nil {
		t.err = badinput.At(t.file, t.line(), what, mend)
	}
}

func (t *table) line() int {
	line, _ := t.rows.FieldPos(0)
	return line
}

// unreadable is the error of text that is no CSV, or of a file whose end is missing.
func (t *table) unreadable(err error) error {
	if broken, ok := errors.AsType[*csv.ParseError](err); ok {
		return badinput.At(
			t.file,
			broken.Line,
			broken.Err.Error(),
			"write as many fields as there are columns, with commas between",
		)
	}
	return badinput.At(t.file, 0, "it cannot be read to its end: "+err.Error(), "fetch the file again")
}

// text is a field of the row, or nothing if the table lacks the column.
func (t *table) text(column string) string {
	i, ok := t.columns[column]
	if !ok {
		return ""
	}
	return strings.Clone(strings.TrimSpace(t.row[i]))
}

// name is a field that identifies this row.
func (t *table) name(column string) string {
	name := t.text(column)
	if name == "" {
		t.refuse("the row has no name", "write one in the column "+column)
		return name
	}
	if line, ok := t.named[name]; ok {
		t.refuse(fmt.Sprintf("%s is there already, in line %d", name, line), "give each row a name of its own")
		return name
	}
	t.named[name] = t.line()
	return name
}

// number is a field with a whole number from 0 to most.
func (t *table) number(column string, most int64) int64 {
	text := t.text(column)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		t.refuse(fmt.Sprintf("%s is %q", column, text), fmt.Sprintf("write a whole number from 0 to %d", most))
		return 0
	}
	return n
}

// instant is a field with seconds, or empty.
func (t *table) instant(column string) int64 {
	if t.text(column) == "" {
		return NoTime
	}
	return t.number(column, mostSeconds)
}
