package progress

import (
	"fmt"
	"io"
	"os"
	"slices"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"
)

const (
	// framesPerSecond is the largest rate at which a screen is drawn.
	framesPerSecond = 10
	// usualWidth and usualHeight are of a terminal that does not report its size.
	usualWidth, usualHeight = 80, 24
)

// screen draws on a terminal, by a program of Bubble Tea's. Signals are left to the process.
type screen struct {
	program *tea.Program
	// ended is closed when the program has ended, failed is then the reason why it could not continue.
	ended  chan struct{}
	failed error
}

// newScreen takes the terminal.
func newScreen(p *Progress, o Options) *screen {
	in := keyboard(o.In)
	options := []tea.ProgramOption{
		tea.WithOutput(o.Out), tea.WithInput(in), tea.WithEnvironment(o.Environment),
		tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler(), tea.WithWindowSize(usualWidth, usualHeight),
	}
	s := &screen{program: tea.NewProgram(newModel(p, in), options...), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		if _, err := s.program.Run(); err != nil {
			s.failed = fmt.Errorf("drawing how far the run is: %w", err)
		}
	}()
	return s
}

// keyboard returns the input for keys: none if it is a file or a pipe of the process's, which another process may want
// to read.
func keyboard(in io.Reader) io.Reader {
	if file, ok := in.(*os.File); ok && !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return in
}

func (s *screen) show(now, ends []View) { s.program.Send(news{now: now, ends: ends}) }

func (s *screen) close() error {
	s.program.Send(leaving{})
	<-s.ended
	return s.failed
}

// news are the next views of the screen.
type news struct{ now, ends []View }

// leaving announces the end of the updates.
type leaving struct{}

// model is the program's.
type model struct {
	shown *Progress
	drawn picture
	keys  keys
	// quit is set if the reader asked for the end.
	quit bool
}

func newModel(p *Progress, in io.Reader) *model {
	m := &model{shown: p, drawn: picture{width: usualWidth, height: usualHeight, theme: colored()}}
	m.keys = keys{
		quit:  key.NewBinding(key.WithKeys("q", "ctrl+c"), key.WithHelp("q", "quit with a partial report")),
		pause: key.NewBinding(key.WithKeys("p", "space"), key.WithHelp("p", "pause")),
	}
	if in == nil {
		m.keys.quit.SetEnabled(false)
		m.keys.pause.SetEnabled(false)
	}
	m.tell()
	return m
}

// Init does nothing: news arrive from outside.
func (m *model) Init() tea.Cmd { return nil }

// Update handles a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 {
			m.drawn.width, m.drawn.height = msg.Width, msg.Height
		}
	case tea.ColorProfileMsg:
		if msg.Profile <= colorprofile.ASCII {
			m.drawn.theme = theme{}
		}
	case tea.KeyPressMsg:
		return m, m.pressed(msg)
	case news:
		return m, m.hear(msg)
	case leaving:
		// Not empty: the last picture has to be as high as the others, or Bubble Tea draws it below them.
		m.drawn.footer = " "
		return m, tea.Quit
	}
	return m, nil
}

// pressed carries out the command of a key.
func (m *model) pressed(msg tea.KeyPressMsg) tea.Cmd {
	switch {
	case key.Matches(msg, m.keys.quit):
		if m.quit {
			return tea.Quit
		}
		m.quit = true
		m.drawn.footer = "ending, what there is will be reported; once more gives the terminal back at once"
		m.shown.quit(ErrQuit)
	case key.Matches(msg, m.keys.pause) && !m.quit:
		m.shown.toggle()
		what := "pause"
		if m.shown.paused() {
			what = "go on"
		}
		m.keys.pause.SetHelp("p", what)
		m.tell()
	}
	return nil
}

// tell writes the purpose of the keys into the footer.
func (m *model) tell() {
	h := help.New()
	strong, faint := m.drawn.theme.strong, m.drawn.theme.faint
	h.Styles = help.Styles{ShortKey: strong, ShortDesc: faint, ShortSeparator: faint}
	m.drawn.footer = h.ShortHelpView([]key.Binding{m.keys.quit, m.keys.pause})
}

// hear takes over news. Of several runs, those that are over leave a line above the screen.
func (m *model) hear(n news) tea.Cmd {
	var printed []tea.Cmd
	for i := range n.ends {
		if n.ends[i].Runs > 1 {
			if line, err := plainLine(&n.ends[i]); err == nil {
				printed = append(printed, tea.Println(shortened(line, m.drawn.width-1)))
			}
		}
	}
	m.drawn.views = n.now
	if len(n.now) == 0 && len(n.ends) > 0 {
		m.drawn.views = slices.Clone(n.ends[len(n.ends)-1:])
	}
	return tea.Sequence(printed...)
}

// View draws.
func (m *model) View() tea.View { return tea.NewView(m.drawn.String()) }

// keys are the bindings of keys.
type keys struct{ quit, pause key.Binding }
