package dra

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/dynamic-resource-allocation/cel"
)

// lens names the attributes of a device that a demand reads. Names are identifiers without their domain, which may name
// too much and never too little.
type lens struct {
	everything bool
	names      map[string]bool
}

// text returns a cache key: equal for lenses that read the same, and only for those, since no name has a space.
func (l *lens) text() string {
	if l.everything {
		return "*"
	}
	return strings.Join(sortedKeys(l.names), " ")
}

// among returns a cache key: equal for lenses that read the same of these names. Most literals of a selector are
// values, not names, and do not change the key.
func (l *lens) among(names map[string]bool) string {
	if l.everything {
		return "*"
	}
	var read []string
	for _, name := range sortedKeys(l.names) {
		if names[name] {
			read = append(read, name)
		}
	}
	return strings.Join(read, " ")
}

// reads reports whether the attribute or capacity of this name can matter.
func (l *lens) reads(name resourcev1.QualifiedName) bool {
	return l.everything || l.names[identifier(string(name))]
}

// identifier drops the domain of a qualified name.
func identifier(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// add adds the fields that another lens reads.
func (l *lens) add(other *lens) {
	l.everything = l.everything || other.everything
	maps.Copy(l.names, other.names)
}

// reading returns the lens of an expression: every field that it selects and every string that it contains, because a
// string may be the key of an attribute. An expression that uses a map of attributes other than by looking up a literal
// key reads everything. The expression is known to compile.
func reading(compiled cel.CompilationResult) *lens {
	l := &lens{names: map[string]bool{}}
	checked, issues := compiled.Environment.Compile(compiled.Expression)
	if issues != nil && issues.Err() != nil {
		l.everything = true
		return l
	}
	tree := checked.NativeRep()
	isMap := func(e ast.Expr) bool { return mayBeMap(tree.GetType(e.ID())) }
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			l.name(e.AsSelect().FieldName())
		case ast.LiteralKind:
			if s, ok := e.AsLiteral().Value().(string); ok {
				l.name(s)
			}
		case ast.CallKind:
			l.everything = l.everything || wanders(e.AsCall(), isMap)
		case ast.ComprehensionKind:
			l.everything = l.everything || isMap(e.AsComprehension().IterRange())
		case ast.ListKind, ast.MapKind, ast.StructKind:
			// Reads of a map inside another value cannot be traced.
			l.everything = l.everything || slices.ContainsFunc(parts(e), isMap)
		default:
		}
	}))
	return l
}

// name adds a text of an expression if an attribute or a capacity may have it as its name: a C identifier. All else is
// written by whoever may create a claim, at any length and with any separator.
func (l *lens) name(text string) {
	if len(text) <= resourcev1.DeviceMaxIDLength && len(validation.IsCIdentifier(text)) == 0 {
		l.names[text] = true
	}
}

// parts returns the elements of a list; the content of a map or a structure counts as a map.
func parts(e ast.Expr) []ast.Expr {
	if e.Kind() == ast.ListKind {
		return e.AsList().Elements()
	}
	return []ast.Expr{e}
}

// wanders reports whether a call does more with maps than to look up a literal key.
func wanders(call ast.CallExpr, isMap func(ast.Expr) bool) bool {
	args := call.Args()
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex:
		return isMap(args[0]) && args[1].Kind() != ast.LiteralKind
	case operators.In:
		return isMap(args[1]) && args[0].Kind() != ast.LiteralKind
	}
	return slices.ContainsFunc(args, isMap) || call.IsMemberFunction() && isMap(call.Target())
}

// mayBeMap reports whether a value of the type holds attributes or capacities by name. Attributes themselves are of a
// type that may be anything and hold nothing; only a call makes a map look like one of them, and the call itself is
// visited.
func mayBeMap(t *types.Type) bool { return t == nil || t.Kind() == types.MapKind }

// constrained adds the attribute that a constraint compares.
func (l *lens) constrained(c resourcev1.DeviceConstraint) {
	for _, name := range []*resourcev1.FullyQualifiedName{c.MatchAttribute, c.DistinctAttribute} {
		if name != nil {
			l.names[identifier(string(*name))] = true
		}
	}
}

// requested adds the capacities that a request names.
func (l *lens) requested(c *resourcev1.CapacityRequirements) {
	if c == nil {
		return
	}
	for name := range c.Requests {
		l.names[identifier(string(name))] = true
	}
}
