// Before the page is drawn, so that it does not flash: the scheme that was chosen here, else the system's.
(() => {
    'use strict';
    const chosen = localStorage.getItem('hawser.theme');
    if (chosen === 'light' || chosen === 'dark') {
        document.documentElement.dataset.theme = chosen;
    }
})();
