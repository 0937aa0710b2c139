// Applies the chosen colour scheme, else the system's, before the first drawing, so that the page does not flash.
(() => {
    'use strict';
    const chosen = localStorage.getItem('hawser.theme');
    if (chosen === 'light' || chosen === 'dark') {
        document.documentElement.dataset.theme = chosen;
    }
})();
